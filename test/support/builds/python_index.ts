// A Python package index with wheels, and a mirror of Python builds: https://packaging.python.org/en/latest/
// specifications/simple-repository-api/
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { zip } from './go_proxy';
import { uvRelease, uvWheel, PUBLIC_PYTHON } from '../../../drivers/toolchain/python_source';

export interface PythonIndex {
  url: string;
  /** Method, path and credential. */
  requests: { path: string; authorization: string | undefined }[];
  /** Answered at their path; a wheel stands on the page of its package too. */
  files: Map<string, Buffer>;
  /** What its pages are. */
  form: 'json' | 'html';
  /** The answer to everything else than null. */
  status: number | null;
  close(): Promise<void>;
}

/** Pages below /simple/, wheels and whatever there is in `files` below /files/. */
export async function startPythonIndex(): Promise<PythonIndex> {
  const server = createServer((request, response) => {
    const place = decodeURIComponent(request.url ?? '');
    self.requests.push({ path: place, authorization: request.headers.authorization });
    if (self.status !== null) return response.writeHead(self.status).end();
    const file = self.files.get(path.basename(place));
    if (place.startsWith('/files/')) return file ? response.end(file) : response.writeHead(404).end();
    const name = /^\/simple\/([^/]+)\/$/.exec(place)?.[1];
    const wheels = [...self.files].filter(([one]) => name !== undefined && one.startsWith(`${name}-`));
    if (wheels.length === 0) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': typeOf(self.form, request) });
    response.end(self.form === 'json' ? jsonPage(name!, wheels) : htmlPage(wheels));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const self: PythonIndex = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ requests: [], files: new Map<string, Buffer>(), form: 'json', status: null },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}

function typeOf(form: 'json' | 'html', { headers }: IncomingMessage): string {
  if (form === 'html') return 'text/html; charset=utf-8';
  expect(headers.accept).toContain('application/vnd.pypi.simple.v1+json');
  return 'application/vnd.pypi.simple.v1+json';
}

const hashOf = (body: Buffer): string => createHash('sha256').update(body).digest('hex');

function jsonPage(name: string, wheels: [string, Buffer][]): string {
  const files = wheels.map(([filename, body]) => ({
    filename,
    url: `../../files/${filename}`,
    hashes: { sha256: hashOf(body) },
  }));
  return JSON.stringify({ meta: { 'api-version': '1.0' }, name, files });
}

function htmlPage(wheels: [string, Buffer][]): string {
  const links = wheels.map(
    ([name, body]) =>
      `<a data-requires-python="&gt;=3.8" href="../../files/${name}#sha256=${hashOf(body)}">${name}</a>`,
  );
  return `<!DOCTYPE html><html><body>\n${links.join('<br/>\n')}\n</body></html>`;
}

/** The wheel of uv as this version of the platform pins it, by pip; null where that cannot be had. */
export function pinnedUvWheel(): { name: string; body: Buffer } | null {
  const wheel = uvWheel(PUBLIC_PYTHON);
  if (wheel === null) return null;
  const directory = path.join(os.tmpdir(), `platform-test-uv-${uvRelease.version}`);
  const file = path.join(directory, wheel.file);
  if (!existsSync(file)) {
    const words = ['-m', 'pip', 'download', '--no-deps', '--quiet', '-d', directory, `uv==${uvRelease.version}`];
    spawnSync('python3', words, { timeout: 120_000 });
  }
  return existsSync(file) ? { name: wheel.file, body: readFileSync(file) } : null;
}

interface PackedPython {
  version: string;
  /** A tar.gz in the layout of python-build-standalone, and a list of builds, as uv reads it, that has it alone. */
  archive: Buffer;
  name: string;
  list: string;
}

/** A Python of this machine of another series than python3; null where there is none that is maintained. */
export function anotherPython(): { version: string; prefix: string } | null {
  const usual = /3\.\d+/.exec(spawnSync('python3', ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[0] ?? '';
  const versions = path.join(os.homedir(), '.pyenv/versions');
  const found = (existsSync(versions) ? readdirSync(versions) : [])
    .filter((version) => /^3\.(1[0-9])\.\d+$/.test(version) && !version.startsWith(`${usual}.`))
    .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
  const version = found.at(-1);
  return version === undefined ? null : { version, prefix: path.join(versions, version) };
}

/** Packs it, so that it runs wherever it is unpacked. */
export function packPython({ version, prefix }: { version: string; prefix: string }): PackedPython {
  const series = version.split('.').slice(0, 2).join('.');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'python-'));
  try {
    const root = path.join(folder, 'python');
    fs.mkdirSync(path.join(root, 'bin'), { recursive: true });
    // It finds its library by a path from where it was installed: from its own place now.
    const program = readFileSync(path.join(prefix, 'bin', `python${series}`)).toString('latin1');
    const library = `${prefix}/lib`;
    const own = '$ORIGIN/../lib'.padEnd(library.length, '\0');
    fs.writeFileSync(
      path.join(root, 'bin', `python${series}`),
      Buffer.from(program.replaceAll(`${library}\0`, `${own}\0`), 'latin1'),
      { mode: 0o755 },
    );
    for (const name of ['python', 'python3']) fs.symlinkSync(`python${series}`, path.join(root, 'bin', name));
    for (const name of readdirSync(library).filter((one) => /^libpython3|^python3/.test(one)))
      fs.cpSync(path.join(library, name), path.join(root, 'lib', name), {
        recursive: true,
        verbatimSymlinks: true,
        filter: (from) => !/\/(test|site-packages\/.+|__pycache__|idlelib|config-[^/]*)$/.test(from),
      });
    const made = spawnSync('tar', ['-czf', path.join(folder, 'python.tar.gz'), '-C', folder, 'python']);
    if (made.status !== 0) throw new Error(String(made.stderr));
    return described(version, readFileSync(path.join(folder, 'python.tar.gz')));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function described(version: string, archive: Buffer): PackedPython {
  const arch = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
  const name = `cpython-${version}+20261110-${arch}-unknown-linux-gnu-install_only_stripped.tar.gz`;
  const [major, minor, patch] = version.split('.').map(Number);
  const build = {
    ...{ name: 'cpython', arch: { family: arch, variant: null }, os: 'linux', libc: 'gnu', variant: null },
    ...{ major, minor, patch, prerelease: '', build: '20261110', sha256: hashOf(archive) },
    url: 'https://github.com/astral-sh/python-build-standalone/releases/download/20261110/' + name.replace('+', '%2B'),
  };
  return { version, archive, name, list: JSON.stringify({ [`cpython-${version}-linux-${arch}-gnu`]: build }) };
}

/** A package `shelf` with one module (the wheel format, PEP 427). */
export function shelfWheel(version: string, module: string): { name: string; body: Buffer } {
  const info = `shelf-${version}.dist-info`;
  const files: (readonly [name: string, text: string])[] = [
    ['shelf.py', module],
    [`${info}/METADATA`, `Metadata-Version: 2.1\nName: shelf\nVersion: ${version}\n`],
    [`${info}/WHEEL`, 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n'],
    [`${info}/entry_points.txt`, '[console_scripts]\nshelf-serve = shelf:serve\n'],
    [`${info}/RECORD`, ''],
  ];
  return { name: `shelf-${version}-py3-none-any.whl`, body: zip(files) };
}
