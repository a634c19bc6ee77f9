"""S3 behind the port of a store: requests by boto3's rules, transfers by obstore."""
