"""What a Spark job uses: a queue's messages on the driver, taken in units of work, as DataFrames."""
