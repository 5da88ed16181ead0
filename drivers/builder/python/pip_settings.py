# Prints the settings of a pip.conf as exports of a shell, but for those that are set: `python3 - pip.conf`. As pip
# reads it, and with `${NAME}` for variables, as in requirement files: a password has no place in a repository.
import configparser
import os
import re
import shlex
import sys

KEYS = {'index-url', 'extra-index-url', 'find-links', 'trusted-host', 'constraint', 'no-index', 'cert'}


def expanded(text):
    return re.sub(r'\$\{([A-Z0-9_]+)\}', lambda found: os.environ.get(found[1], found[0]), text)


parser = configparser.RawConfigParser()
try:
    with open(sys.argv[1], encoding='utf-8') as file:
        parser.read_file(file)
except (configparser.Error, UnicodeDecodeError):
    sys.exit('%s could not be read: it is not in the format of pip.' % sys.argv[1])
found = {}
for section in ('global', 'install'):
    if parser.has_section(section):
        found.update({key.replace('_', '-'): value for key, value in parser.items(section)})
for key in KEYS & found.keys():
    name = 'PIP_' + key.upper().replace('-', '_')
    value = ' '.join(expanded(found[key]).split())
    if not os.environ.get(name):
        print('export %s=%s' % (name, shlex.quote(value)))
