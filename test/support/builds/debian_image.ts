// The lowest layer of an image like Debian's, made of programs of this host, with accounts, apt and dpkg.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { tarOf, type Entry } from './images';

const PROGRAMS = [
  ...['/bin/sh', '/bin/bash', '/usr/bin/env', '/usr/bin/id', '/usr/bin/stat', '/bin/ls', '/bin/cat'],
  ...['/bin/chown', '/bin/cp'],
  ...['/bin/chmod', '/bin/mkdir', '/bin/rm', '/bin/touch', '/bin/sleep', '/usr/bin/test', '/bin/tar', '/usr/bin/diff'],
  ...['/usr/bin/setpriv', '/usr/sbin/useradd', '/usr/sbin/groupadd', '/bin/mknod', '/bin/mount', '/bin/mktemp'],
  ...['/usr/bin/apt-get', '/usr/lib/apt/methods/file', '/usr/lib/apt/methods/copy', '/usr/lib/apt/methods/store'],
  ...['/usr/bin/dpkg', '/usr/bin/dpkg-deb', '/usr/bin/dpkg-split', '/sbin/ldconfig', '/sbin/start-stop-daemon'],
];
const LOADED = /(?:=> )?(\/\S+) \(0x/g;

/** Why this host cannot give such a layer; null: it can. */
export function debianObstacle(): string | null {
  const missing = PROGRAMS.find((program) => !existsSync(program));
  return missing === undefined ? null : `this host has no ${missing}`;
}

/** The package that `apt-get install greeting` installs, from a repository in the image. */
export async function debianLayer(): Promise<Buffer> {
  const files = new Set(PROGRAMS);
  for (const program of PROGRAMS) for (const library of librariesOf(program)) files.add(library);
  return tarOf([
    ...directories(['tmp'], 0o1777),
    ...directories(['data', 'etc/apt/apt.conf.d', 'etc/apt/preferences.d', 'etc/apt/trusted.gpg.d', 'root']),
    ...directories(['var/lib/apt/lists/partial', 'var/cache/apt/archives/partial', 'var/lib/dpkg/info', 'var/log/apt']),
    ...directories([
      'var/lib/dpkg/updates',
      'var/lib/dpkg/triggers',
      'usr/share/dpkg',
      'proc',
      'sys',
      'dev',
      'repository',
    ]),
    ...[...files].map((file) => ({ name: file.slice(1), mode: 0o755, content: readFileSync(file) })),
    ...['cputable', 'ostable', 'tupletable', 'abitable'].map((name) => `usr/share/dpkg/${name}`).map(ofHost),
    { name: 'etc/passwd', content: 'root:x:0:0:root:/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/bin/false\n' },
    { name: 'etc/group', content: 'root:x:0:\nnogroup:x:65534:\n' },
    { name: 'etc/shadow', mode: 0o600, content: 'root:*:19000:0:99999:7:::\n_apt:*:19000:0:99999:7:::\n' },
    { name: 'etc/login.defs', content: 'USERGROUPS_ENAB yes\nUID_MIN 1000\nGID_MIN 1000\n' },
    { name: 'etc/nsswitch.conf', content: 'passwd: files\ngroup: files\nshadow: files\n' },
    { name: 'etc/apt/sources.list', content: 'deb [trusted=yes] copy:/repository ./\n' },
    ...['var/lib/dpkg/status', 'var/lib/dpkg/available'].map((name) => ({ name, content: '' })),
    ...repository(),
  ]);
}

function librariesOf(program: string): string[] {
  let text = '';
  try {
    text = execFileSync('ldd', [program], { stdio: ['ignore', 'pipe', 'ignore'] }).toString();
  } catch {
    return [];
  }
  return [...text.matchAll(LOADED)].map(([, library = '']) => library);
}

function directories(names: string[], mode = 0o755): Entry[] {
  return names.map((name) => ({ name: `${name}/`, type: 'directory', mode }));
}

function ofHost(name: string): Entry {
  return { name, content: readFileSync(`/${name}`) };
}

function repository(): Entry[] {
  const place = mkdtempSync(path.join(os.tmpdir(), 'repository-'));
  try {
    const control = [
      ...['Package: greeting', 'Version: 1.0', 'Architecture: all', 'Maintainer: Example <a@example.com>'],
      ...['Description: prints a greeting', ''],
    ].join('\n');
    for (const name of ['DEBIAN', 'usr/share/greeting']) mkdirSync(path.join(place, 'root', name), { recursive: true });
    writeFileSync(path.join(place, 'root/DEBIAN/control'), control);
    // As packages with users of their own do.
    writeFileSync(path.join(place, 'root/DEBIAN/postinst'), '#!/bin/sh\nset -e\nchown 42:42 /usr/share/greeting\n', {
      mode: 0o755,
    });
    writeFileSync(path.join(place, 'root/usr/share/greeting/text'), 'hello\n');
    execFileSync('dpkg-deb', ['--build', '--root-owner-group', 'root', 'greeting.deb'], {
      cwd: place,
      stdio: 'ignore',
    });
    const content = readFileSync(path.join(place, 'greeting.deb'));
    const digest = execFileSync('sha256sum', ['greeting.deb'], { cwd: place }).toString().slice(0, 64);
    const index = `${control}Filename: ./greeting.deb\nSize: ${content.length}\nSHA256: ${digest}\n`;
    return [
      { name: 'repository/greeting.deb', content },
      { name: 'repository/Packages', content: index },
    ];
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
