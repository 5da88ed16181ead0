// OpenDKIM's verifier, a judge of signatures beside mailauth. It asks the resolver of the system, at port 53: for its
// process /etc/resolv.conf is another file, which needs a mount namespace and thus root.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { WITHOUT_DISKS } from '../runner/repository';

const SCRIPT = 'mount --bind "$1" "$(readlink -f /etc/resolv.conf)" && exec opendkim-testmsg';

/** @param dnsHost answers at port 53. @returns what it prints: nothing for a signature that is good */
export async function judgeByOpendkim(raw: string, dnsHost: string): Promise<string> {
  const directory = mkdtempSync(path.join(tmpdir(), 'opendkim-'));
  try {
    const resolvers = path.join(directory, 'resolv.conf');
    writeFileSync(resolvers, `nameserver ${dnsHost}\noptions timeout:2 attempts:2\n`);
    const child = spawn('unshare', ['--mount', 'sh', WITHOUT_DISKS, 'sh', '-c', SCRIPT, 'sh', resolvers]);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += String(chunk)));
    child.stdin.on('error', () => {});
    child.stdin.end(raw, 'latin1');
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    return code ? `exit ${code}: ${text.trim()}` : text.trim();
  } finally {
    rmSync(directory, { recursive: true });
  }
}
