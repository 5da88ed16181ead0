// Rows that stand below others, or that something else than a POST of their own makes.
import { mintId } from '../../core/ids';
import { sealedColumns } from '../../models/base/sealed_columns';
import { insertRegistryImage } from './registries/registry_rows';
import type { World } from './world';

type Make = (world: World, kind: string) => Promise<string>;

const volumeBackups = new WeakMap<World, Promise<string>>();

/** @param create makes a row by the operation of its kind */
export function childMakers(create: Make): Record<string, Make> {
  return {
    /** Of a zone that is active, which the loop makes it. */
    async cdn_purge(world, kind) {
      await activateCdnZone(world, await world.id('cdn_zone'));
      return create(world, kind);
    },
    /** A volume has one at a time that is not completed. */
    async volume_backup(world, kind) {
      const made = (volumeBackups.get(world) ?? Promise.resolve('')).then(async () => {
        const id = await create(world, kind);
        await world.service.sql(`update volume_backups set status = 'completed', type = 'scheduled' where id = $1`, [
          id,
        ]);
        return id;
      });
      volumeBackups.set(
        world,
        made.catch(() => ''),
      );
      return made;
    },
    /** Pushed with an OCI client. */
    registry_image: async (world) => insertRegistryImage(world, await world.id('registry')),
    /** Made by calls that destroy, in projects that want a second person. */
    async approval(world) {
      const id = mintId('apr');
      const input = world.service.platform.secrets.seal('{}', sealedColumns.approvalInput.contextOf(id));
      await world.service.sql(
        `insert into approvals (id, created_at, updated_at, project_id, fingerprint, operation, summary, sealed_input,
          affects, requested_by, expires_at)
        values ($1, now(), now(), $2, $1, 'deleteVolume', 'Delete a volume', $3, '[]',
          '{"type": "system", "id": null, "name": "Platform"}', now() + interval '1 day')`,
        [id, world.project, input],
      );
      return id;
    },
    /** A key of the project that has destroyed too much. */
    async api_key(world) {
      const key = await world.service.mintKey({ kind: 'project', project_id: world.project });
      const { body } = await world.service.call('GET', '/v2/me', { key, project: null });
      await world.service.sql('update api_keys set paused_at = now() where id = $1', [body.token.id]);
      return body.token.id as string;
    },
    /** As a deletion makes it where deleted resources are kept. */
    async bin_entry(world) {
      const [id, volume] = [mintId('del'), await world.fresh('volume')];
      await world.service.sql(
        `with gone as (update volumes set deleted_at = now() where id = $2 returning *)
        insert into deleted_resources
          (id, created_at, updated_at, project_id, resource_type, resource_id, name, kept_until)
        select $1, now(), now(), project_id, 'volume', id, name, now() + interval '7 days' from gone`,
        [id, volume],
      );
      return id;
    },
    /** The entry of a project whose owner is that of the service's. */
    async deleted_project(world) {
      const [id, project] = [mintId('del'), await world.service.newProject()];
      await world.service.sql(
        `with gone as (update projects set deleted_at = now() where id = $2 returning *)
        insert into deleted_resources
          (id, created_at, updated_at, project_id, resource_type, resource_id, name, kept_until)
        select $1, now(), now(), id, 'project', id, name, now() + interval '7 days' from gone`,
        [id, project.id],
      );
      return id;
    },
    /** Made by the checks of an observer. */
    async check_result(world) {
      const answer = await world.call('POST', `/v2/observers/${await world.id('observer')}/check`);
      if (answer.status !== 200) throw new Error(`no check: ${answer.text}`);
      return answer.body.id;
    },
    /** An observer has one that is open; further ones are over. */
    async incident(world) {
      const id = mintId('inc');
      await world.service.sql(
        `insert into incidents (id, project_id, observer_id, status, cause, started_at, resolved_at)
        values ($1, $2, $3, 'resolved', 'The connection was refused.', now(), now())`,
        [id, world.project, await world.id('observer')],
      );
      return id;
    },
  };
}

export function activateCdnZone(world: World, id: string): Promise<unknown> {
  return world.service.sql(`update cdn_zones set status = 'active' where id = $1`, [id]);
}
