"""Databases that last: each commit as Parquet files and a manifest, in a directory.

    manifests/00000012.json                           version 12: what there is, and in which files
    programs/00000009-5f0c11aa.json                   the program as it is since version 9
    data/path/00000012-5f0c11aa-inserted.parquet      what version 12 added to a relation
    data/path/00000012-5f0c11aa-deleted.parquet       what it took away
    data/path/00000012-5f0c11aa-snapshot.parquet      all that there was, written as one
    states/00000012-5f0c11aa.json                     the state of version 12: answers with their numbers

A commit writes its files first, under names that were never used, and then its manifest, which
appears as a whole or not at all and only if there is none of that number. So a crash leaves the version
before or the new one, and at worst files that no manifest names.

| file          | is about                                                                |
|---------------|-------------------------------------------------------------------------|
| `manifest.py` | what a manifest says, and its text                                      |
| `files.py`    | the directory: durable writing, publishing, locking, on any file system |
| `rows.py`     | sets of rows in Arrow and in Spark, and their Parquet files             |
| `levels.py`   | a relation as a list of changes, and when some of them become one       |
| `programs.py` | a definition as text and back; what tells two programs apart            |
| `facts.py`    | what a commit does to the explicit facts of relations that rules derive |
| `store.py`    | versions: reading one, removing old ones                                |
| `draft.py`    | a version that is being written                                         |
| `stored.py`   | the backend that writes a version for each commit                       |
| `states.py`   | what a state says, and its text                                         |
| `saving.py`   | writing a state, and loading it                                         |
| `replay.py`   | facts, and what has happened to them since a version, as operations     |
| `view.py`     | an old version, to be read                                              |
| `opening.py`  | how a database begins with a store                                      |
"""
