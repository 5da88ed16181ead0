// Files that deployments and applications leave on a host.
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { unusedArtifacts, withoutApplicationRow } from '../../../models/deployments/retention';
import { withoutUploadRow } from '../../../models/deployments/source_upload/job_queries';
import { allAtOnce, type Leftovers } from '../../declarations';
import type { Drivers, HostDrivers } from '../../job';
import { removeTree } from '../../../core/process/remove_tree';

/** Built files that no deployment runs or keeps. */
export const artifactLeftovers: Leftovers = {
  kind: 'files',
  list: (drivers) => allAtOnce(namesIn(drivers, 'releases')),
  withoutRow: unusedArtifacts,
  remove: (id, { directories }) => removeTree(path.join(directories.releases, id)),
};

export const cacheLeftovers: Leftovers = {
  kind: 'cache',
  list: (drivers) => allAtOnce(namesIn(drivers, 'caches')),
  withoutRow: withoutApplicationRow,
  remove: (id, { directories }) => removeTree(path.join(directories.caches, id)),
};

export const mirrorLeftovers: Leftovers = {
  kind: 'mirror',
  list: ({ host }, ctx) => allAtOnce(host ? host.source.listMirrors(ctx) : Promise.resolve([])),
  withoutRow: withoutApplicationRow,
  remove: (id, { source }, ctx) => source.removeMirror(id, ctx),
};

/** Partial uploads of this age are removed: no client resumes them any more. */
const OLD_PART_MS = 60 * 60_000;

export const uploadLeftovers: Leftovers = {
  kind: 'source upload',
  async *list({ host }, ctx) {
    await host?.uploads.removeOldParts(OLD_PART_MS, ctx);
    yield* allAtOnce(host ? host.uploads.list(ctx) : Promise.resolve([]));
  },
  withoutRow: withoutUploadRow,
  remove: (id, { uploads }, ctx) => uploads.remove(id, ctx),
};

async function namesIn({ host }: Drivers, directory: keyof HostDrivers['directories']): Promise<string[]> {
  if (!host) return [];
  return readdir(host.directories[directory]).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? [] : Promise.reject(error),
  );
}
