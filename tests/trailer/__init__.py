"""Tests of the kernel: accounts, policy, jobs, API basics."""
