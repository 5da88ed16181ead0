// Entries of the bin: deleted resources that can be restored. How a kind is kept is said by `static bin` of its class.
import { formats, formatMistake } from '../../core/formats/formats';
import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import type { Values } from '../../db/table';
import type { QueryListDeletedResourcesArgs, RestoreDeletedResourceInput, RestoredResource } from '../../schema/types';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { kindNamed } from '../base/kinds';
import { page, type Page } from '../base/page';
import { purgeResource } from '../base/purge';
import { Resource, type ResourceClass } from '../base/resource';
import { removeEntry } from './purge';

/** A deleted resource in the bin of its project. Its id is the time of the deletion. */
export class BinEntry extends Resource {
  static readonly table = 'deleted_resources';
  static readonly kind = 'bin_entry';
  static readonly idPrefix = 'del';
  static override readonly filters = {
    resource_type: 'resource_type = ?',
    resource_id: 'resource_id = ?',
    name: 'name = ?',
  };

  declare resource_type: string;
  declare resource_id: string;
  declare name: string | null;
  declare kept_until: string;
  /** Not before, it is removed for good by request. */
  declare purge_from: string;
  /** Ids of rows that went with the resource. */
  declare along: string[];
  declare memo: Values;

  /** The resource as the answer nests it. */
  get resource(): { type: string; id: string; name: string | null } {
    return { type: this.resource_type, id: this.resource_id, name: this.name };
  }

  /** @throws invalid_cursor */
  static list(ctx: Context, { id: _, ...args }: QueryListDeletedResourcesArgs): Promise<Page<BinEntry>> {
    return page(BinEntry, ctx, args);
  }

  /** @throws validation_failed, quota_exceeded, name_taken, and what the kind says in its `bin` */
  async restore(ctx: Context, input: RestoreDeletedResourceInput): Promise<RestoredResource> {
    const kind = kindNamed(this.resource_type);
    const bin = kind.bin as Bin;
    const changes = renamed(bin, input.name);
    // First of all: whoever removes the entry decides what becomes of the resource.
    await removeEntry(ctx.sql, this.id);
    const resource = await Resource.bringBack.call(kind as ResourceClass, ctx, this.resource_id, changes);
    const notes = (await bin.restore?.(ctx, resource, this.memo, this.along)) ?? [];
    const { name = null } = resource as { name?: string | null };
    return { resource: { ...this.resource, name }, notes };
  }

  /**
   * Removes the resource for good.
   * @throws deletion_protected with the project, resource_protected in the hours after the deletion
   */
  async purge(ctx: Context): Promise<void> {
    const { resource_type, resource_id: id, project_id } = this;
    await requireUnprotected(ctx, { id, project_id, deletion_protection: false });
    // What does not wait goes whatever the clock says: it may have stepped back, or be that of another host.
    const waits = Date.parse(this.purge_from) > Date.parse(this.created_at);
    if (waits && Date.parse(this.purge_from) > Date.now())
      throw problem(
        'resource_protected',
        `It is older than a day, so it can be removed for good from ${this.purge_from}.`,
      );
    ctx.activity.resource = { ...this.resource, project_id };
    await removeEntry(ctx.sql, this.id);
    await purgeResource(ctx, kindNamed(resource_type), { id, project_id }, this.along);
  }
}

/** @throws validation_failed */
function renamed({ nameFormat }: Bin, name: string | undefined | null): Values {
  if (name == null) return {};
  if (nameFormat === null)
    throw validationFailed([{ field: 'name', code: 'immutable', detail: 'cannot be changed for this type' }]);
  const parsed = formats[nameFormat](name);
  if (!parsed)
    throw validationFailed([{ field: 'name', code: 'invalid_format', detail: formatMistake(nameFormat, name) }]);
  return { name: parsed.value };
}
