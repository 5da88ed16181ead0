// A real Git server on loopback: git http-backend behind node http, with repositories that a test makes and changes.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Transform } from 'node:stream';
import { answerLfs, type LfsStore } from '../builds/lfs_server';

/**
 * Text of a plain file, null takes the file away; else with its mode: 100755, 120000 (link), 160000 (submodule, content
 * is its commit).
 */
type GitFile = string | Buffer | null | { mode: '100644' | '100755' | '120000' | '160000'; content: string | Buffer };
export type GitFiles = Record<string, GitFile>;

interface GitServerOptions {
  /** Asked of every request. */
  auth?: { username: string; password: string };
  /** An address of the loopback interface; default 127.0.0.1. */
  host?: string;
}

interface GitRequest {
  method: string;
  url: string;
  authorization: string | null;
}

export interface GitServer {
  url(name: string): string;
  /** The folder of the bare repository, for file:// addresses. */
  folder(name: string): string;
  /** A repository with one commit, or an empty one for no files. Answers the commit. */
  makeRepository(name: string, files: GitFiles, options?: { branch?: string; format?: 'sha256' }): string;
  /**
   * One more commit; a new branch goes out from the default one. `parent`: another commit to build on, as a force push
   * does; null has none.
   */
  commit(
    name: string,
    files: GitFiles,
    options?: { branch?: string; message?: string; parent?: string | null },
  ): string;
  /** Points any ref at a commit: refs/pull/7/head. null deletes the ref. */
  setRef(name: string, ref: string, commit: string | null): void;
  remove(name: string): void;
  rename(name: string, to: string): void;
  /** The default branch. */
  setHead(name: string, branch: string): void;
  branches(name: string): { name: string; sha: string }[];
  requests: GitRequest[];
  /** Pause before each chunk of an answer. */
  trickleMs: number;
  /** Large files, served beside the repositories. */
  lfs: LfsStore;
  /**
   * Called for each request; what it answers is sent in place of the repository: a status and headers, or 'hang' to
   * leave it open.
   */
  intercept:
    | ((request: http.IncomingMessage) => { status: number; headers?: Record<string, string> } | 'hang' | null)
    | null;
  close(): Promise<void>;
}

const gitEnv = {
  PATH: process.env.PATH,
  HOME: '/nonexistent',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
};

export async function startGitServer(options: GitServerOptions = {}): Promise<GitServer> {
  const root = mkdtempSync(path.join(os.tmpdir(), 'git-server-'));
  const folder = (name: string) => path.join(root, `${name}.git`);
  const server = http.createServer((request, response) => answer(self, root, options, request, response));
  await new Promise<void>((resolve) => server.listen(0, options.host ?? '127.0.0.1', resolve));
  const { address, port } = server.address() as AddressInfo;
  const self: GitServer = {
    url: (name) => `http://${address}:${port}/${name}.git`,
    folder,
    makeRepository(name, files, { branch = 'main', format } = {}) {
      const formats = format === undefined ? [] : [`--object-format=${format}`];
      git(['init', '--bare', '--quiet', ...formats, `--initial-branch=${branch}`, folder(name)]);
      git(['-C', folder(name), 'config', 'uploadpack.allowFilter', 'true']);
      return Object.keys(files).length === 0 ? '' : self.commit(name, files, { branch, message: 'First commit' });
    },
    commit: (name, files, { branch = 'main', message = 'Change', parent } = {}) =>
      addCommit(folder(name), files, branch, message, parent),
    setRef: (name, ref, commit) =>
      void git(['-C', folder(name), 'update-ref', ...(commit === null ? ['-d', ref] : [ref, commit])]),
    remove: (name) => rmSync(folder(name), { recursive: true, force: true }),
    rename: (name, to) => renameSync(folder(name), folder(to)),
    setHead: (name, branch) => void git(['-C', folder(name), 'symbolic-ref', 'HEAD', `refs/heads/${branch}`]),
    branches: (name) => {
      const format = '--format=%(refname:short) %(objectname)';
      const text = existsSync(folder(name)) ? git(['-C', folder(name), 'for-each-ref', format, 'refs/heads']) : '';
      return text.split('\n').flatMap((line) => {
        const [branch = '', sha = ''] = line.split(' ');
        return branch ? [{ name: branch, sha }] : [];
      });
    },
    requests: [],
    trickleMs: 0,
    lfs: { objects: new Map(), downloads: [], intercept: null },
    intercept: null,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(root, { recursive: true, force: true });
    },
  };
  return self;
}

function git(args: string[], input?: Buffer): string {
  return execFileSync('git', args, { env: gitEnv, input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] }).trim();
}

function addCommit(
  folder: string,
  files: GitFiles,
  branch: string,
  message: string,
  parent: string | null | undefined,
): string {
  const from = parent === undefined ? (headOf(folder, `refs/heads/${branch}`) ?? headOf(folder, 'HEAD')) : parent;
  const stream = Buffer.concat([
    Buffer.from(
      `${from === null ? `reset refs/heads/${branch}\n\n` : ''}commit refs/heads/${branch}\n` +
        `committer Ada Example <ada@example.com> ${Math.floor(Date.now() / 1000)} +0000\n`,
    ),
    data(message),
    Buffer.from(from === null ? '' : `from ${from}\n`),
    ...Object.entries(files).map(([file, content]) => change(file, content)),
  ]);
  git(['-C', folder, 'fast-import', '--quiet', '--force'], stream);
  return headOf(folder, `refs/heads/${branch}`)!;
}

function headOf(folder: string, ref: string): string | null {
  try {
    return git(['-C', folder, 'rev-parse', '--verify', '--quiet', ref]);
  } catch {
    return null;
  }
}

function change(file: string, given: GitFile): Buffer {
  if (given === null) return Buffer.from(`D ${file}\n`);
  const { mode, content } =
    typeof given === 'string' || Buffer.isBuffer(given) ? { mode: '100644', content: given } : given;
  if (mode === '160000') return Buffer.from(`M 160000 ${content.toString()} ${file}\n`);
  return Buffer.concat([Buffer.from(`M ${mode} inline ${file}\n`), data(content)]);
}

function data(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from(`data ${bytes.length}\n`), bytes, Buffer.from('\n')]);
}

function answer(
  self: GitServer,
  root: string,
  options: GitServerOptions,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): void {
  self.requests.push({
    method: request.method!,
    url: request.url!,
    authorization: request.headers.authorization ?? null,
  });
  const instead = self.intercept?.(request) ?? null;
  if (instead === 'hang') return;
  if (instead !== null) return void response.writeHead(instead.status, instead.headers).end();
  if (!allowed(options, request))
    return void response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
  if (/\.git\/info\/lfs\//.test(request.url!)) return answerLfs(self.lfs, request, response);
  backend(root, self.trickleMs, request, response);
}

function allowed({ auth }: GitServerOptions, request: http.IncomingMessage): boolean {
  return (
    auth === undefined ||
    request.headers.authorization === `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`
  );
}

/** CGI (RFC 3875), as git http-backend speaks it. */
function backend(root: string, trickleMs: number, request: http.IncomingMessage, response: http.ServerResponse): void {
  const url = new URL(request.url!, 'http://git.example.com');
  const child = spawn('git', ['http-backend'], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {
      ...gitEnv,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_ADDR: '127.0.0.1',
    },
  });
  child.stdin.on('error', () => {}); // it may end before it has read everything
  request.pipe(child.stdin);
  response.on('close', () => child.kill('SIGKILL'));
  let head = Buffer.alloc(0);
  let isPiped = false;
  child.stdout.on('data', function collect(chunk: Buffer) {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    child.stdout.off('data', collect);
    const { status, headers } = cgiHeaders(head.subarray(0, end).toString());
    response.writeHead(status, headers).write(head.subarray(end + 4));
    if (trickleMs === 0) return void child.stdout.pipe(response);
    isPiped = true;
    const slowly = new Transform({
      transform: (rest, _encoding, done) => void setTimeout(() => done(null, rest), trickleMs),
    });
    child.stdout.pipe(slowly).pipe(response);
  });
  child.on('close', () => isPiped || response.end());
}

function cgiHeaders(text: string): { status: number; headers: Record<string, string> } {
  const headers = Object.fromEntries(
    text.split('\r\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const { Status = '200', ...rest } = headers;
  return { status: parseInt(Status, 10), headers: rest };
}
