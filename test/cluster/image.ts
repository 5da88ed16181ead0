// Images that containerd imports without a registry: one layer with the program of tests. In Docker's archive format,
// which `ctr images import`, `k3s ctr images import` and `kind load image-archive` read.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { buildTestProgram } from './build';
import { tarOf, type Entry } from '../support/builds/images';

/** Does what its arguments say: test/cluster/program/main.go. */
export const PROGRAM_IMAGE = process.env.KUBERNETES_TEST_IMAGE ?? 'test.local/program:1';
/** What keeps the namespaces of a pod. */
export const PAUSE_IMAGE = 'test.local/pause:1';

const FOLDERS = ['bin/', 'dev/', 'etc/', 'proc/', 'sys/'];

/** Writes the archive of both images. @param program path of the static program */
export async function writeImageArchive(program: string, archive: string): Promise<void> {
  const layer = await tarOf([
    ...FOLDERS.map((name) => ({ name, type: 'directory' as const, mode: 0o755, mtime: new Date(0) })),
    { name: 'tmp/', type: 'directory', mode: 0o1777, mtime: new Date(0) },
    { name: 'bin/program', mode: 0o755, mtime: new Date(0), content: readFileSync(program) },
  ]);
  const entries: Entry[] = [{ name: 'layer.tar', content: layer }];
  const manifest = [PROGRAM_IMAGE, PAUSE_IMAGE].map((name) => {
    const entrypoint = name === PAUSE_IMAGE ? ['/bin/program', 'pause'] : ['/bin/program'];
    const config = configOf(layer, entrypoint);
    const file = `${sha256(config)}.json`;
    entries.push({ name: file, content: config });
    return { Config: file, RepoTags: [name], Layers: ['layer.tar'] };
  });
  writeFileSync(archive, await tarOf([...entries, { name: 'manifest.json', content: JSON.stringify(manifest) }]));
}

function configOf(layer: Buffer, entrypoint: readonly string[]): string {
  return JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Entrypoint: entrypoint, Env: ['PATH=/bin'], User: '10001' },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
    history: [{ created_by: 'test/cluster' }],
  });
}

/** By hand: writes the archive for a cluster that is not of these tests. */
async function main(): Promise<void> {
  await writeImageArchive(await buildTestProgram(), process.argv[2] ?? 'images.tar');
}

const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

if (require.main === module) void main();
