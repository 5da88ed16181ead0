// Shared by the steps of a publish: the registry of the platform, and a staging directory for uploads.
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { RegistryAccess } from '../../core/protocols/registry_content';
import type { DriverContext } from '../../core/driver';
import type { Outbound } from '../../core/outbound';
import type { ImageAccess } from '../image';
import { openRepository, type Repository } from '../image/repository';
import type { Tool } from '../toolchain';
import type { Layer } from './layer';

export interface ReleaseImageParts {
  /** Staging directory for uploads, and cache of facts about the base and the programs. */
  directory: string;
  /** Name of the registry of the platform. */
  registry: string;
  /** An address of the registry, with a token for these rights. @throws DriverError transient where it is not there */
  access(rights: readonly RegistryAccess[]): { url: string; token: string };
  /** The base image of all release images. */
  base: { reference: string; access(): Promise<ImageAccess> };
  /** Where programs of builds are kept on this host. */
  toolchains: { directory: string; ensure(tools: readonly Tool[], ctx: DriverContext): Promise<void> };
  outbound: Outbound;
  /** For the registry of this installation. */
  unchecked: Outbound;
}

/** Repositories of the platform, beside the applications' repositories. No application id equals these names. */
export const BASE_REPOSITORY = 'base';
export const TOOLS_REPOSITORY = 'tools';

/** @param also repositories of the platform of which layers are taken over */
export function repositoryOf(parts: ReleaseImageParts, name: string, also: readonly string[] = []): Repository {
  const right = (one: string, actions: RegistryAccess['actions']): RegistryAccess => ({
    ...{ type: 'repository', name: `${parts.registry}/${one}`, actions },
  });
  const rights = [right(name, ['pull', 'push', 'delete']), ...also.map((one) => right(one, ['pull']))];
  return openRepository(`${parts.registry}/${name}`, parts.access(rights));
}

/** Uploads a layer from a file to a repository, unless the repository has it. */
export async function uploadLayer(
  repository: Repository,
  layer: Pick<Layer, 'digest'>,
  file: string,
  ctx: DriverContext,
): Promise<void> {
  if (await repository.hasBlob(layer.digest, ctx)) return;
  await repository.upload(layer.digest, createReadStream(file, { highWaterMark: 256 * 1024 }), ctx);
}

/** A file for the time of some work. What a crash leaves of it goes with the next start. */
export async function withStagedFile<T>(
  { directory }: ReleaseImageParts,
  name: string,
  work: (file: string) => Promise<T>,
): Promise<T> {
  const file = path.join(directory, 'staging', name);
  try {
    return await work(file);
  } finally {
    await rm(file, { force: true });
  }
}
