# Prints the dependencies of an application, one requirement a line: those of Pipfile.lock, Pipfile or pyproject.toml.
# Run by the Python of its environment, with nothing but the standard library and what pip brings. Of pyproject.toml
# also optional dependencies and groups: `python - extra:prod group:web`.
import json
import os
import re
import sys

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib


def read_toml(name):
    with open(name, 'rb') as file:
        return tomllib.load(file)


def bounds(part):
    """`^1.2` and `~1.2` as Poetry means them; anything else is of the packaging standard already."""
    found = re.fullmatch(r'([~^])\s*v?(\d+(?:\.\d+)*)', part)
    if not found:
        return '==' + part if re.fullmatch(r'\d[\w.]*(?:\.\*)?', part) else part
    numbers = [int(number) for number in found[2].split('.')]
    if found[1] == '~':
        place = min(len(numbers) - 1, 1)
    else:
        place = next((i for i, number in enumerate(numbers) if number > 0), len(numbers) - 1)
    upper = numbers[:place] + [numbers[place] + 1]
    return '>=%s,<%s' % (found[2], '.'.join(map(str, upper)))


def specifier(version):
    parts = [part.strip() for part in str(version or '*').split(',')]
    return ','.join(bounds(part) for part in parts if part not in ('', '*'))


def requirement(name, value):
    if isinstance(value, str):
        return name + specifier(value)
    if not isinstance(value, dict) or value.get('optional'):
        return None
    extras = value.get('extras') or []
    full = name + ('[%s]' % ','.join(extras) if extras else '')
    marker = ' ; ' + value['markers'] if value.get('markers') else ''
    if 'git' in value:
        ref = value.get('ref') or value.get('rev') or value.get('tag') or value.get('branch')
        return '%s @ git+%s%s%s' % (full, value['git'], '@' + ref if ref else '', marker)
    if 'path' in value:
        return './' + value['path'].removeprefix('./')
    if 'url' in value:
        return '%s @ %s%s' % (full, value['url'], marker)
    if 'file' in value:
        return '%s @ %s%s' % (full, value['file'], marker)
    hashes = ''.join(' --hash=' + one for one in value.get('hashes') or [])
    return full + specifier(value.get('version')) + marker + hashes


def of_table(table):
    return [requirement(name, value) for name, value in table.items() if name.lower() != 'python']


def of_group(groups, name, within):
    """With the groups that it includes (PEP 735)."""
    if name in within:
        raise ValueError('the dependency group %s includes itself.' % name)
    lines = []
    for one in groups[name]:
        lines += [one] if isinstance(one, str) else of_group(groups, one['include-group'], within + [name])
    return lines


def indexes(sources, are_hashed):
    """pip looks for each name in all indexes: with several, only hashes keep a private name from the public one."""
    urls = [one['url'] for one in sources if not one['url'].startswith('https://pypi.org/')]
    if len(sources) > 1 and urls and not are_hashed:
        raise ValueError('the Pipfile names several sources. Commit a Pipfile.lock with the hashes of all packages.')
    first = sources[:1] and sources[0]['url'] in urls
    return ['%s %s' % ('--index-url' if first and i == 0 else '--extra-index-url', url) for i, url in enumerate(urls)]


def dependencies():
    if os.path.exists('Pipfile.lock'):
        with open('Pipfile.lock', encoding='utf-8') as file:
            locked = json.load(file)
        found = of_table(locked.get('default', {}))
        # pip takes hashes for all requirements or for none; what comes from Git has none.
        are_hashed = all(one and '--hash=' in one for one in found)
        if not are_hashed:
            found = [one and re.sub(r' --hash=\S+', '', one) for one in found]
        return indexes(locked.get('_meta', {}).get('sources') or [], are_hashed) + found
    if os.path.exists('Pipfile'):
        stated = read_toml('Pipfile')
        return indexes(stated.get('source') or [], False) + of_table(stated.get('packages', {}))
    found = read_toml('pyproject.toml')
    poetry = found.get('tool', {}).get('poetry', {})
    stated = found.get('project', {}).get('dependencies')
    if stated is None:
        stated = of_table(poetry.get('dependencies', {}))
    chosen = [one.split(':', 1) for one in sys.argv[1:]]
    for kind, name in chosen:
        if kind == 'extra':
            stated = stated + found['project']['optional-dependencies'][name]
        elif name in found.get('dependency-groups', {}):
            stated = stated + of_group(found['dependency-groups'], name, [])
        else:
            stated = stated + of_table(poetry['group'][name]['dependencies'])
    return stated


try:
    print('\n'.join(one for one in dependencies() if one))
except (ValueError, AttributeError, KeyError, TypeError) as error:
    sys.exit('The dependencies of the application could not be read: %s' % error)
