"""Starting Spark: cold by spark-submit or its java command, warm by Spark Connect, on a cluster by its REST server."""
