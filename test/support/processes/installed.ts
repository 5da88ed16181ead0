// An installation of releases that are made of this checkout, in a namespace of its own, with a script in the place of
// systemd. Node.js and the packages are those of the checkout, so that a release is made in a second.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { version } from '../../../package.json';
import { hasProgram } from '../runner/has_program';
import { named } from '../runner/programs';
import { ROOT, WITHOUT_DISKS } from '../runner/repository';
import { freePort } from './free_port';

const run = promisify(execFile);
const SUPPORT = path.join(ROOT, 'test/support/processes');
/** Of a machine that others keep busy: how long a state is waited for. */
const STATE_LIMIT_MS = 600_000;

export const canInstall = process.getuid?.() === 0 && ['unshare', 'nsenter', 'flock', 'tar'].every(hasProgram);
/** `test` for what needs an installation. */
export const installing = (): jest.It => (canInstall ? test : named(test.skip, ' (needs: root)')) as jest.It;

/** For `archive`: a line before the others of the service. What an upgrade asks the program before still works. */
export const startingWith = (line: string): string =>
  `sed -i '1i if (process.argv.length < 3) { ${line} }' app/dist/server/main.js`;

export interface Journal {
  from: string;
  to: string | null;
  step: string;
  outcome: string;
  reason: string | null;
  notes: string[];
  point: string | null;
  well: string[];
}

export interface Installed {
  directory: string;
  base: string;
  /** Runs a script of bash as root of that machine. */
  run(script: string, env?: Record<string, string>): Promise<{ code: number; out: string; err: string }>;
  /** Makes the archive of a release, with its SHA256SUMS. @param edit a script that runs in its directory */
  archive(version: string, edit?: string, root?: string): Promise<string>;
  journal(name: 'state' | 'last'): Promise<Journal | null>;
  /** Version to which the link leads. */
  current(): Promise<string>;
  /** Version of the service that answers. */
  served(): Promise<string | null>;
  waitUntilServed(version: string): Promise<void>;
  waitUntilEnded(): Promise<Journal>;
  /** What starts with the machine, after all its processes were killed. */
  startMachine(): Promise<void>;
  close(): Promise<void>;
}

/** Installs the version of this checkout and starts it. */
export async function installRelease(): Promise<Installed> {
  const directory = mkdtempSync(path.join(tmpdir(), 'installed-'));
  await run(process.execPath, ['tools/scripts/build.mjs'], { cwd: ROOT });
  const scratch = path.join(directory, 'machine');
  mkdirSync(scratch);
  const script = path.join(SUPPORT, 'upgrade_namespace.sh');
  const apart = ['--mount', '--propagation', 'slave', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const words = [...apart, 'sh', WITHOUT_DISKS, 'bash', script, scratch, ROOT, path.join(SUPPORT, 'systemctl.sh')];
  const holder = spawn('unshare', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  const port = await freePort();
  const adminPort = await freePort();
  const machine = machineOf(directory, holder, { port, adminPort });
  const others = { INGRESS_PORT: await freePort(), S3_PORT: await freePort(), REGISTRY_PORT: await freePort() };
  const off = {
    DNS_PORT: 0,
    SMTP_PORTS: 0,
    MX_PORT: 0,
    NETWORK: 'shared',
    VOLUME_DRIVER: 'directory',
    SANDBOX: 'none',
  };
  const values = { PORT: port, ADMIN_PORT: adminPort, ...others, ...off, SHUTDOWN_GRACE_SECONDS: 2 };
  const lines = Object.entries(values).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(path.join(directory, 'settings'), lines.join(''));
  const archive = await machine.archive(version);
  const installed = await machine.run(
    `tar -xzf ${archive} -C /run && cat settings >/dev/null && /run/platform-*/install.sh --no-packages --no-start &&
     cat settings >>/etc/platform/platform.env && systemctl start platform.service`,
  );
  if (installed.code !== 0) throw new Error(`not installed: ${installed.out}${installed.err}`);
  await machine.waitUntilServed(version);
  return machine;
}

interface Ports {
  port: number;
  adminPort: number;
}

function machineOf(directory: string, holder: ChildProcess, { port, adminPort }: Ports): Installed {
  const base = `http://127.0.0.1:${port}`;
  const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const first = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim();
  const runScript: Installed['run'] = (script, env = {}) =>
    new Promise((resolve) => {
      const words = ['--target', first, '--mount', '--pid', `--wdns=${directory}`, 'bash', '-c', script];
      execFile('nsenter', words, { env: { PATH, HOME: '/root', ...env }, maxBuffer: 2 ** 26 }, (error, out, err) =>
        resolve({ code: error ? Number(error.code ?? -1) : 0, out, err }),
      );
    });
  const journal: Installed['journal'] = async (name) => {
    const { out } = await runScript(`cat /opt/platform/.upgrade/${name}.json 2>/dev/null || true`);
    return out ? (JSON.parse(out) as Journal) : null;
  };
  const served: Installed['served'] = async () => {
    if ((await fetch(`${base}/readyz`).catch(() => null))?.status !== 200) return null;
    const text = await fetch(`http://127.0.0.1:${adminPort}/metrics`).then(
      (answer) => answer.text(),
      () => '',
    );
    return /platform_build_info\{[^}]*version="([^"]+)"/.exec(text)?.[1] ?? null;
  };
  return {
    ...{ directory, base, run: runScript, journal, served },
    archive: (made, edit = '', root = `platform-${made}-linux-${process.arch}`) =>
      makeArchive(directory, made, edit, root),
    current: async () => (await runScript('readlink /opt/platform/current')).out.trim(),
    async waitUntilServed(expected) {
      await waitFor(async () => (await served()) === expected, `${expected} is not ready`);
    },
    async waitUntilEnded() {
      await waitFor(async () => (await journal('state')) === null, 'the upgrade does not end');
      return (await journal('last')) as Journal;
    },
    async startMachine() {
      const units = 'systemctl start platform.service; systemctl start --no-block platform-upgrade.service';
      await runScript(`rm -f /run/stand-in/supervisor /run/stand-in/pid /run/stand-in/stopping; ${units}`);
    },
    async close() {
      await runScript('systemctl stop platform.service');
      // With all its processes.
      holder.kill('SIGKILL');
      await sleep(500);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function waitFor(isDone: () => Promise<boolean>, failure: string): Promise<void> {
  for (const until = Date.now() + STATE_LIMIT_MS; !(await isDone()); await sleep(100))
    if (Date.now() > until) throw new Error(failure);
}

async function makeArchive(directory: string, made: string, edit: string, root: string): Promise<string> {
  const folder = mkdtempSync(path.join(directory, `release-`));
  const place = path.join(folder, root);
  const app = path.join(place, 'app');
  mkdirSync(path.join(place, 'bin'), { recursive: true });
  mkdirSync(path.join(app, 'tools/scripts'), { recursive: true });
  await run('cp', ['-a', path.join(ROOT, 'dist'), path.join(app, 'dist')]);
  rmSync(path.join(app, 'dist/release'), { recursive: true, force: true });
  const manifest = { ...JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')), version: made };
  for (const file of ['package.json', 'dist/package.json'])
    writeFileSync(path.join(app, file), JSON.stringify(manifest, null, 2));
  for (const file of ['templates', 'core/catalog/optional_programs.json', 'tools/scripts/setup.mjs', 'CHANGELOG.md'])
    cpSync(path.join(ROOT, file), path.join(app, file), { recursive: true });
  writeFileSync(path.join(place, 'bin/node'), `#!/bin/sh\nexec ${process.execPath} "$@"\n`, { mode: 0o755 });
  cpSync(path.join(ROOT, 'tools/release/platform.sh'), path.join(place, 'bin/platform'));
  writeFileSync(path.join(place, 'bin/svc'), '#!/bin/sh\n', { mode: 0o755 });
  cpSync(path.join(ROOT, 'tools/release/install.sh'), path.join(place, 'install.sh'));
  writeFileSync(path.join(place, 'VERSION'), `${made}\n`);
  writeFileSync(path.join(place, 'RELEASE'), `${made} ${path.basename(folder)}\n`);
  if (edit) await run('bash', ['-ec', edit], { cwd: place });
  await run('bash', ['-c', 'find * -type f ! -name FILES -exec sha256sum {} + >FILES'], { cwd: place });
  const archive = path.join(folder, `platform-${made}-linux-${process.arch}.tar.gz`);
  const pack =
    'tar --owner=0 --group=0 -C "$1" -cf - "$2" | gzip -1 >"$3" && cd "$1" && sha256sum *.tar.gz >SHA256SUMS';
  await run('bash', ['-c', pack, 'pack', folder, root, archive]);
  rmSync(place, { recursive: true });
  return archive;
}
