// Images of registries without their content, for tests of lists.
import { randomBytes } from 'node:crypto';
import { mintId } from '../../../core/ids';
import type { TestService } from '../service';

/** A tag and its manifest. @returns the id of the row */
export async function insertRegistryImage(
  { service, project }: { service: TestService; project: string },
  registryId: string,
): Promise<string> {
  const id = mintId('rim');
  const digest = `sha256:${randomBytes(32).toString('hex')}`;
  const repository = `app/${id.slice(-8)}`;
  await service.sql(
    `insert into registry_manifests (registry_id, repository, digest, media_type, content, size_bytes)
      values ($1, $2, $3, 'application/vnd.oci.image.manifest.v1+json', '{}', 2)`,
    [registryId, repository, digest],
  );
  await service.sql(
    `insert into registry_tags (id, project_id, registry_id, repository, tag, digest, media_type, size_bytes, pushed_at)
      values ($1, $2, $3, $4, 'latest', $5, 'application/vnd.oci.image.manifest.v1+json', 2, now())`,
    [id, project, registryId, repository, digest],
  );
  return id;
}
