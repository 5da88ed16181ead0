// Networks of an ordinary user who may use /dev/net/tun, made by root for a test: a process of that user, on a host of
// its own (a network namespace), which sees the device and the sources at other places. Nothing of this host changes.
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import type { NetworkTrial } from './network_trial';
import { kill } from '../processes/processes';
import { ROOT, WITHOUT_DISKS } from '../runner/repository';

/** It has no name on this host, as in many containers. */
const USER = '64321';

export interface UserTrial extends Pick<NetworkTrial, 'reach' | 'shell' | 'close'> {
  /** A server of the host, for strangers to say that they reached it. @returns its port */
  listen(address: string): Promise<number>;
}

// $1 directory, $2 sources, $3 Node.js, $4 program. Disks of other suites would stay mounted here as long as it runs.
const ENTER = `set -e
mount -t tmpfs -o mode=755 tmpfs "$1"
mknod "$1/tun" c 10 200
chmod 666 "$1/tun"
mount --bind "$1/tun" /dev/net/tun
mkdir "$1/sources"
mount --bind "$2" "$1/sources"
cd "$1/sources"
exec setpriv --reuid ${USER} --regid ${USER} --clear-groups "$3" --require ./test/support/runner/typescript.js -e "$4"`;

const PROGRAM = `
const { hostServer, openNetworkTrial } = require('./test/support/networks/network_trial');
let one;
const calls = {
  open: async (openings) => void (one = await openNetworkTrial(openings)),
  reach: (...given) => one.reach(...given),
  shell: (...given) => one.shell(...given),
  listen: async (address) => (await hostServer(address)).port,
  close: () => one.close(),
};
process.on('message', ({ id, call, given }) =>
  calls[call](...given).then(
    (result) => process.send({ id, result }),
    (error) => process.send({ id, error: error.stack })));`;

interface Answer {
  id?: number;
  result?: unknown;
  error?: string;
}

/** @param host name of the network namespace that is its host */
export async function openUserTrial(host: string, openings: object): Promise<UserTrial> {
  const directory = mkdtempSync('/tmp/platform-user-');
  const command = ['sh', WITHOUT_DISKS, 'sh', '-c', ENTER, 'enter', directory, ROOT, process.execPath, PROGRAM];
  const child = spawn('ip', ['netns', 'exec', host, 'unshare', '-m', ...command], {
    env: { PATH: process.env.PATH, LANG: 'C.UTF-8' },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const waiting = new Map<number, (answer: Answer) => void>();
  child.on('message', (answer: Answer) => waiting.get(answer.id!)?.(answer));
  child.on('exit', (code) => {
    for (const end of waiting.values()) end({ error: `The process of the user ended with ${code}.` });
  });
  let last = 0;
  const ask = async <T>(call: string, ...given: unknown[]): Promise<T> => {
    const id = ++last;
    const answer = await new Promise<Answer>((resolve) => {
      waiting.set(id, resolve);
      child.send({ id, call, given }, (error) => error && resolve({ error: error.message }));
    });
    waiting.delete(id);
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.result as T;
  };
  const close = async (): Promise<void> => {
    await kill(child);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    chmodSync(directory, 0o755);
    await ask('open', openings);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    reach: (...given) => ask('reach', ...given),
    shell: (...given) => ask('shell', ...given),
    listen: (address) => ask('listen', address),
    close: () => ask<void>('close').finally(close),
  };
}
