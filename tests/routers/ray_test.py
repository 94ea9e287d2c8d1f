"""The application of deploy/ray with two replicas: prefix hits, streams, and a server that is killed.

    ray_test.py --quire BINARY
"""
