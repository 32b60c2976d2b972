"""What an attacker would try: every address as everybody, hostile requests, forbidden code."""
