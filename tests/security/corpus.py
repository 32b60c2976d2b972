"""Texts that broke other products: shells, SQL, templates, paths, terminals, addresses."""

from __future__ import annotations

from typing import Final

# Touched by nothing; a file of this name says that some text was run.
MARK: Final = "/tmp/trailer-fuzz-canary"

SHELL: Final = (
    *(f"$(touch {MARK})", f"`touch {MARK}`", f"; touch {MARK}", f"| touch {MARK}"),
    *(f"&& touch {MARK}", f"\ntouch {MARK}\n", f"a'; touch {MARK}; '", f'a"; touch {MARK}; "'),
    *("--upload-pack=touch /tmp/x", "-u/bin/sh", "-oProxyCommand=touch /tmp/x", "--help", "-"),
    *("ext::sh -c touch% /tmp/x", "$HOME", "${PATH}", "%PATH%", "~root", "$IFS", "{a,b}", "*"),
    *("\\", "\\\\", "'", '"', "`", "#", "!", "&", "|", ">", "<", "(", ")"),
)
SQL: Final = (
    *("' OR '1'='1", "'; DROP TABLE accounts_user; --", '" OR ""="', "1; SELECT pg_sleep(5)"),
    *("' UNION SELECT password FROM accounts_user --", "%", "_", "%' ESCAPE '!", "\\'; --"),
    *("1) OR (1=1", "admin'--", "x' AND extractvalue(1,1)--", "NULL", "name__startswith"),
)
TEMPLATES: Final = (
    *("{{ settings.SECRET_KEY }}", "{% debug %}", "{{7*7}}", "${7*7}", "#{7*7}", "<%= 7*7 %>"),
    *("${config.x}", "${secret.x}", "{0.__class__}", "%(password)s", "%s%s%n", "{}", "{{"),
    *("${jndi:ldap://127.0.0.1/a}", "__import__('os')", "@{x}", "[[x]]"),
)
PATHS: Final = (
    *("../../../../etc/passwd", "/etc/passwd", "..%2f..%2fetc%2fpasswd", "....//etc/passwd"),
    *("/proc/self/environ", "/var/run/docker.sock", "file:///etc/passwd", "C:\\boot.ini"),
    *("/..", ".", "..", "/", "//", "./a", "a/../b", "/dev/stdin", "con", "a\\b", "~/.ssh/id_rsa"),
)
MARKUP: Final = (
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "javascript:alert(1)"),
    *("<svg/onload=alert(1)>", "';alert(1)//", "</textarea><script>", "&lt;script&gt;"),
    *("<!--", "]]>", "data:text/html,<script>", "\u2028", "<a href='//evil.example'>"),
)
BYTES: Final = (
    *("a\r\nSet-Cookie: x=1", "a\nX-Injected: 1", "\x1b]8;;http://evil.example\x07x\x1b]8;;\x07"),
    *("\x1b[2J", "\x1b]0;title\x07", "\x07\x08\x7f", "\u202eevil\u202c", "\ufeff", "\u0000"),
    *("\ud83d\ude00", "ﬀ", "İ", "ß", "a" * 300, "é" * 64, "\u200b", " ", "  a  ", "\t", ""),
)
ADDRESSES: Final = (
    *("http://127.0.0.1/", "http://localhost:6379/", "http://0.0.0.0/", "http://[::1]/"),
    *("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://2130706433/"),
    *("http://0177.0.0.1/", "http://0x7f.1/", "http://127.1/", "http://127.0.0.1.nip.io/"),
    *("http://169.254.169.254/latest/meta-data/", "http://metadata.google.internal/"),
    *("http://[fd00:ec2::254]/", "http://10.0.0.1/", "http://192.168.0.1/", "http://172.16.0.1/"),
    *("http://100.64.0.1/", "http://evil.example@127.0.0.1/", "http://127.0.0.1#@good.example/"),
    *("http://127.0.0.1\\@good.example/", "http://localhost./", "http://LOCALHOST/"),
    *("gopher://127.0.0.1:6379/_PING", "dict://127.0.0.1:11211/stat", "ftp://127.0.0.1/"),
    *("file:///etc/passwd", "ssh://-oProxyCommand=x/y", "git://127.0.0.1/x", "ext::sh -c x"),
    *("https://127.0.0.1:2375/containers/json", "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/"),
    *("https://example.com:99999/", "https:///x", "https://", "//127.0.0.1/", "http:127.0.0.1"),
    *("127.0.0.1:5000/x", "localhost/x:latest", "[::1]:5000/x", "-x/y", "a/b@sha256:", "UPPER/x"),
)
TEXTS: Final = (*SHELL, *SQL, *TEMPLATES, *PATHS, *MARKUP, *BYTES, *ADDRESSES)
NUMBERS: Final = (
    *(0, 1, -1, 2, 7, 80, 65535, 65536, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**70),
    *(-(2**63), 0.5, -0.0, 1e-9, 1e15, 1.5e300),
)
