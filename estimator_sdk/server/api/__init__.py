"""The API: each module answers for one part, and lists what it answers, from which the routes and OpenAPI are made."""
