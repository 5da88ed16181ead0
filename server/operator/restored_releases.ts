// Releases that were built after the files of a restored backup were copied: they are built again from their source.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { Problem } from '../../core/errors';
import { named } from '../../db/statement';
import { Deployment } from '../../models/deployments/deployment';
import type { Platform } from '../platform/platform';
import { inProject } from './open_project';

const CURRENT = named(`select d.id, coalesce(d.artifact_id, d.id) as artifact_id, a.id as application_id, a.name,
    a.project_id, p.account_id, p.name as project_name
  from applications a join deployments d on d.id = a.current_deployment_id join projects p on p.id = a.project_id
  where a.deleted_at is null order by a.id`);

interface Current {
  id: string;
  artifact_id: string;
  application_id: string;
  name: string;
  project_id: string;
  account_id: string;
  project_name: string;
}

/** @returns a sentence for each application that is built again, or cannot be */
export async function rebuildLostReleases(platform: Platform): Promise<string[]> {
  const { config, database } = platform;
  if (config.workloads === 'kubernetes') return [];
  const notes: string[] = [];
  for (const one of await database.query<Current>(CURRENT, [])) {
    if (existsSync(path.join(config.runtimeDir, 'releases', one.artifact_id))) continue;
    const title = `The application ${one.name} of ${one.project_name} (${one.application_id})`;
    try {
      await inProject(
        platform,
        one,
        async (ctx) => void (await Deployment.buildAgain(ctx, one.application_id, one.id)),
      );
      notes.push(`${title} is built again from its source: its release is newer than the files.`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      notes.push(`${title} has to be deployed again by hand: ${error.detail}`);
    }
  }
  return notes;
}
