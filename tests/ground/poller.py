"""What a container runs to ask for the page of `web` again and again, and tell every answer."""

# A page every 10 ms for ever, from the first address that the name has: nothing is tried twice.
_LOOP = """
while :; do
  at=$(nslookup -type=a web | awk '/^Address: / {print $2; exit}')
  if timeout 5 wget -q -O /dev/null "http://$at/" 2>/tmp/why$n; then echo ok
  else echo "failed: $(tail -n 1 /tmp/why$n)"; fi
  usleep 10000
done
"""


def poller_command(visitors: int = 1) -> list[str]:
    """Prints a line for each answer, `ok` or what went wrong; so many ask side by side."""
    numbers = " ".join(map(str, range(visitors)))
    return ["sh", "-c", f"for n in {numbers}; do ({_LOOP}) & done; wait"]
