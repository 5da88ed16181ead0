// A real SSH server on loopback (ssh2) that serves repositories of a Git server to the keys that it knows.
import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Server, utils, type ParsedKey, type ServerChannel } from 'ssh2';
import { keyFingerprint } from '../../../models/integrations/shared_repository/deploy_key';
import type { GitServer } from './git_server';

export interface SshGitServer {
  /** ssh://git@127.0.0.1:port/name.git */
  url(name: string): string;
  /** Lines as in authorized_keys. */
  keys: Set<string>;
  /** Commands that were run. */
  commands: string[];
  port: number;
  /** Of the host key, as ssh-keygen shows it. */
  fingerprint: string;
  /** Called with each command before it is run. */
  onCommand: (command: string) => void;
  /** What `git-lfs-authenticate` answers; null: the host does not know the command. */
  lfs: { href: string; header: Record<string, string> } | null;
  close(): Promise<void>;
}

/** @param port 0: a free one; another to stand in for a server that has gone */
export async function startSshGitServer(git: GitServer, port = 0): Promise<SshGitServer> {
  const hostKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
    type: 'pkcs1',
    format: 'pem',
  });
  const publicKey = (utils.parseKey(hostKey as string) as ParsedKey).getPublicSSH();
  const known: SshGitServer = {
    ...{ url: () => '', keys: new Set(), commands: [], port: 0, fingerprint: keyFingerprint(publicKey), lfs: null },
    ...{ onCommand: () => undefined, close: () => Promise.resolve() },
  };
  const clients = new Set<{ end(): void }>();
  const server = new Server({ hostKeys: [hostKey as string] }, (client) => {
    clients.add(client);
    client.on('error', () => undefined);
    client.on('close', () => clients.delete(client));
    client.on('authentication', (asked) => {
      if (asked.method !== 'publickey') return asked.reject(['publickey']);
      const isKnown = [...known.keys].some((line) => {
        const key = utils.parseKey(line);
        if (key instanceof Error || !key.getPublicSSH().equals(asked.key.data)) return false;
        return !asked.signature || key.verify(asked.blob as Buffer, asked.signature, asked.hashAlgo) === true;
      });
      if (isKnown) asked.accept();
      else asked.reject(['publickey']);
    });
    client.on('session', (accept) => {
      const session = accept();
      session.on('env', (yes) => yes?.());
      session.on('exec', (yes, no, { command }) => {
        known.commands.push(command);
        known.onCommand(command);
        if (command.startsWith('git-lfs-authenticate ')) {
          if (!known.lfs) return no();
          const channel = yes();
          channel.write(JSON.stringify(known.lfs));
          channel.exit(0);
          return channel.end();
        }
        const match = /^git-upload-pack '\/?([^']+)\.git'$/.exec(command);
        if (!match) return no();
        serve(yes(), git.folder(match[1] ?? ''));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  known.port = (server.address() as AddressInfo).port;
  known.url = (name) => `ssh://git@127.0.0.1:${known.port}/${name}.git`;
  known.close = () => {
    for (const client of clients) client.end();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  return known;
}

function serve(channel: ServerChannel, folder: string): void {
  const child = spawn('git', ['upload-pack', folder], { stdio: ['pipe', 'pipe', 'ignore'] });
  channel.pipe(child.stdin);
  child.stdin.on('error', () => undefined);
  child.stdout.pipe(channel, { end: false });
  child.on('close', (code) => {
    channel.exit(code ?? 1);
    channel.end();
  });
}
