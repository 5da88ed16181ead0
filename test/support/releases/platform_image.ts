// The image that Dockerfile makes of the release of today, built by buildah on a Debian without a registry.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { hasProgram } from '../runner/has_program';
import { ROOT } from '../runner/repository';
import { debianRoot, obstacleToDebian } from './debian';
import { archiveName, releaseOfToday } from './release';

export const IMAGE_PROGRAMS = ['buildah', 'debootstrap', 'flock', 'git'];
export const PLATFORM_IMAGE = 'localhost/platform';

/** What this machine lacks, though it has the programs; null: nothing. */
export function obstacleToImage(): string | null {
  if (process.getuid?.() !== 0) return 'root';
  return IMAGE_PROGRAMS.every(hasProgram) ? obstacleToDebian('bookworm') : null;
}

export interface ImageBuild {
  /** Of every command of buildah. */
  storage: readonly string[];
  buildah(...words: string[]): Promise<string>;
}

/** Storage of buildah in a directory of a test. */
export function openImageBuild(home: string): ImageBuild {
  const storage = ['--root', `${home}/storage`, '--runroot', `${home}/run`, '--storage-driver', 'vfs'];
  const run = promisify(execFile);
  return {
    storage,
    buildah: async (...words) => (await run('buildah', [...storage, ...words], { maxBuffer: 2 ** 26 })).stdout.trim(),
  };
}

/** PLATFORM_IMAGE in the storage. A minute or two. */
export async function buildPlatformImage({ buildah }: ImageBuild, home: string): Promise<void> {
  const base = await buildah('from', 'scratch');
  await buildah('add', '--quiet', base, await debianRoot('bookworm'), '/');
  await buildah('commit', '--quiet', '--rm', base, 'localhost/debian');
  const context = path.join(home, 'context');
  mkdirSync(context);
  const archive = `${archiveName()}.tar.gz`;
  copyFileSync(path.join(await releaseOfToday(), archive), path.join(context, archive));
  const words = ['--build-arg', 'BASE=localhost/debian', '--file', path.join(ROOT, 'Dockerfile')];
  const way = ['--isolation', 'chroot', '--format', 'docker'];
  await buildah('build', ...way, ...words, '--tag', PLATFORM_IMAGE, context);
}
