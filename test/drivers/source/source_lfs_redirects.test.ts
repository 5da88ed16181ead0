// Large files (Git LFS) whose server sends the client elsewhere.
import type { GitRemote } from '../../../drivers/source';
import { startGitServer, type GitFiles, type GitServer } from '../../support/git/git_server';
import { addLargeFile } from '../../support/builds/lfs_server';
import { openSourceBench, type SourceBench } from '../../support/builds/source_bench';

const credential = { kind: 'basic', username: 'oauth2', password: 't0ken-for-large-files' } as const;

let bench: SourceBench;
let server: GitServer;
let other: GitServer;

beforeAll(async () => {
  bench = await openSourceBench();
  server = await startGitServer({ auth: credential });
  other = await startGitServer();
});

afterAll(async () => {
  await server?.close();
  await other?.close();
  await bench?.close();
});

const remoteOf = (id: string): GitRemote => ({ address: server.url(id), credential });

function makeRepository(files: GitFiles): { id: string; sha: string } {
  const id = bench.fresh('app');
  return { id, sha: server.makeRepository(id, { '.gitattributes': '*.bin filter=lfs\n', ...files }) };
}

test('headers that the server gives for an object follow a redirect on its host, and none to another', async () => {
  const moved = addLargeFile(other.lfs, Buffer.from('moved'));
  const { id, sha } = makeRepository({ 'moved.bin': moved.pointer });
  const header = { Authorization: 'Bearer for this object', 'X-Signed': 'too' };
  server.lfs.intercept = (oid) => ({
    oid,
    actions: { download: { href: `${other.url('x')}/info/lfs/objects/old/${oid}`, header } },
  });
  const sent: unknown[] = [];
  other.intercept = ({ url = '', headers: { authorization = null, 'x-signed': signed = null } }) => {
    sent.push([authorization, signed]);
    return url.includes('/old/') ? { status: 302, headers: { location: url.replace('/old/', '/') } } : null;
  };
  await bench.exported(id, remoteOf(id), sha);
  other.intercept = null;
  const both = [header.Authorization, 'too'];
  expect(sent).toEqual([both, both]);

  const far = addLargeFile(other.lfs, Buffer.from('far away'));
  const next = makeRepository({ 'far.bin': far.pointer });
  server.lfs.intercept = (oid) => ({
    oid,
    actions: { download: { href: `${server.url('y')}/info/lfs/objects/away/${oid}`, header } },
  });
  server.intercept = ({ url = '' }) =>
    url.includes('/away/')
      ? { status: 302, headers: { location: `${other.url('x')}/info/lfs/objects/${far.oid}` } }
      : null;
  await bench.exported(next.id, remoteOf(next.id), next.sha);
  server.intercept = null;
  expect(other.lfs.downloads).toEqual([moved.oid, far.oid]);
  expect(other.requests.at(-1)?.authorization).toBeNull();
});
