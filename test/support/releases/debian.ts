// A bare Debian, as a new machine is: made by debootstrap once, and booted with systemd in a namespace.
import { execFile, spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ROOT } from '../runner/repository';

const run = promisify(execFile);
/** What install.sh asks for: a machine of tests need not reach a mirror twice. */
const PACKAGES = ['systemd-sysv', 'dbus', 'git', 'bubblewrap', 'iproute2', 'nftables', 'e2fsprogs', 'ca-certificates'];
const BOOT_MS = 60_000;

/** Debian 12 and 13. */
export type Suite = 'bookworm' | 'trixie';

const MIRROR = 'http://deb.debian.org/debian';
/** Layers, and a program of this machine in a container: what `bootDebian` does, without a Debian. */
const TRIAL = `
trial=$(mktemp -d)
trap 'umount -l "$trial/root" "$trial"; rmdir "$trial"' EXIT
mount -t tmpfs tmpfs "$trial" && cd "$trial"
mkdir -p lower/usr lower/etc upper work root
ln -s usr/bin usr/sbin usr/lib usr/lib64 lower/
touch lower/etc/os-release
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work root
systemd-nspawn --quiet --register=no --keep-unit --machine="trial-$$" -D root --bind-ro=/usr true
`;

/** What this machine lacks, though it has the programs, to boot one; null where it can. */
export function obstacleToBoot(suite: Suite): string | null {
  const isGood = spawnSync('bash', ['-ec', TRIAL], { stdio: 'ignore', timeout: BOOT_MS }).status === 0;
  return isGood ? obstacleToDebian(suite) : 'the right to boot containers';
}

/** The same, to make its files. */
export function obstacleToDebian(suite: Suite): string | null {
  if (fs.existsSync(rootOf(suite))) return null;
  const words = ['--quiet', '--spider', '--tries=1', '--timeout=20', `${MIRROR}/dists/${suite}/Release`];
  return spawnSync('wget', words, { stdio: 'ignore' }).status === 0 ? null : `the way to ${MIRROR}`;
}

function rootOf(suite: string): string {
  return path.join(ROOT, '.cache/releases', `debian-${suite}`);
}

/** Its files; not to be changed. A minute the first time. */
export async function debianRoot(suite: Suite): Promise<string> {
  const root = rootOf(suite);
  fs.mkdirSync(path.dirname(root), { recursive: true });
  const make =
    'set -e; [ ! -d "$1" ] || exit 0; rm -rf "$1.draft"; ' +
    'debootstrap --variant=minbase "$2" "$3" "$1.draft" "$4"; mv "$1.draft" "$1"';
  await run(
    'flock',
    [`${root}.lock`, 'sh', '-c', make, 'make', root, `--include=${PACKAGES.join(',')}`, suite, MIRROR],
    {
      maxBuffer: 2 ** 26,
    },
  );
  return root;
}

export interface Machine {
  /** A script of bash, as root. @throws Error with what it wrote, where it fails */
  run(script: string): Promise<string>;
  /** Its first process, as this machine numbers it. */
  leader: number;
  /** Where its files are on this machine. */
  root: string;
  remove(): Promise<void>;
}

/**
 * What it writes is in memory, and gone with it.
 * @param network that of this machine, or one of its own, which has a loopback interface alone
 */
export async function bootDebian(
  home: string,
  name: string,
  suite: Suite,
  network: 'shared' | 'own' = 'shared',
): Promise<Machine> {
  const lower = await debianRoot(suite);
  const [scratch, root] = [path.join(home, name), path.join(home, name, 'root')];
  fs.mkdirSync(scratch, { recursive: true });
  await run('mount', ['-t', 'tmpfs', 'tmpfs', scratch]);
  for (const folder of ['upper', 'work', 'root']) fs.mkdirSync(path.join(scratch, folder));
  const layers = `lowerdir=${lower},upperdir=${scratch}/upper,workdir=${scratch}/work`;
  await run('mount', ['-t', 'overlay', 'overlay', '-o', layers, root]);
  const words = ['--quiet', '--register=no', '--keep-unit', `--machine=${name}`, '-D', root, '--boot'];
  if (network === 'own') words.push('--private-network');
  const nspawn = spawn('systemd-nspawn', words, { stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = new Promise((resolve) => nspawn.on('close', resolve));
  const remove = async (): Promise<void> => {
    // The first process of the machine does not end with the one that has started it.
    for (const leader of childrenOf(nspawn.pid as number)) process.kill(leader, 'SIGKILL');
    nspawn.kill('SIGKILL');
    await ended;
    for (const mount of [root, scratch]) await run('umount', ['--lazy', mount]);
  };
  try {
    return { ...(await shellOf(nspawn.pid as number)), root, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

function childrenOf(pid: number): number[] {
  try {
    return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** A shell in the namespaces of its first process, when systemd has started everything. */
async function shellOf(nspawn: number): Promise<Pick<Machine, 'run' | 'leader'>> {
  for (const end = Date.now() + BOOT_MS; ; await sleep(200)) {
    const [leader] = childrenOf(nspawn);
    const env = {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      LANG: 'C.UTF-8',
    };
    const shell = async (script: string): Promise<string> => {
      const words = ['--target', String(leader), '--all', '--wdns=/root', 'bash', '-c', `exec 2>&1; set -e; ${script}`];
      const ran = await run('nsenter', words, { env, maxBuffer: 2 ** 26 }).catch((error: { stdout: string }) => {
        throw new Error(`${script}\n${error.stdout}`);
      });
      return ran.stdout;
    };
    const state = leader ? await shell('systemctl is-system-running || true').catch(() => '') : '';
    if (leader && /^(running|degraded)/.test(state)) return { run: shell, leader };
    if (Date.now() > end) throw new Error(`systemd is ${state.trim() || 'not there'} after a minute`);
  }
}
