"""PySpark job without code of its own: moves a queue into Parquet, JSON or a database, as its options say.

`trigmon.spark.load` tells the options, and so does `spark-submit queue_load.py --help`.
"""

from trigmon.spark.load import main

if __name__ == "__main__":
    main()
