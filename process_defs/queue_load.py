"""PySpark job without code of its own: moves a queue into Parquet, JSON or a database, by options alone.

`trigmon.spark.load` documents the options; `spark-submit queue_load.py --help` lists them.
"""

from trigmon.spark.load import main

if __name__ == "__main__":
    main()
