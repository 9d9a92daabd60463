"""Launchers of Spark jobs: by spark-submit or its java command, by Spark Connect, or by a cluster's REST server."""
