"""Shards as they are read: which there are, what is in them, ahead of the script, and from a store.

shards.py       which shards there are, and how many samples each has
formats.py      what is in a shard
index_first.py  what a pipe brings, without the list of shards that comes first
reader.py       the samples of some places
ahead.py        a thread that reads ahead
disk_cache.py   shards of a store on this machine
fetch.py        the process that brings one for a process that was forked
"""
