import type { Context } from '../../core/context';
import { defineStates } from '../../core/states';
import type { InstanceStatus, QueryListApplicationInstancesArgs } from '../../schema/types';
import { Resource } from '../base/resource';
import { columnsOf, tableOf } from '../../db/table';
import { page, type Page } from '../base/page';

/** One running copy of a process type. The loop makes them and takes them away; users only read them. */
export class Instance extends Resource {
  static readonly table = 'instances';
  static readonly kind = 'instance';
  static readonly idPrefix = 'ins';
  static override readonly filters = {
    process_id: 'process_id = ?',
    preview_id: 'preview_id = ?',
    status: 'status = ?',
  };
  static override readonly states = defineStates<InstanceStatus>({
    initial: ['starting'],
    // `stopping` ends with the row, as a deletion would.
    transitional: ['starting'],
    moves: {
      starting: ['running', 'crashed', 'stopping'],
      running: ['starting', 'crashed', 'stopping'],
      crashed: ['starting', 'running', 'stopping'],
    },
  });

  declare application_id: string;
  declare preview_id: string | null;
  declare process_id: string;
  declare process_type: string;
  declare deployment_id: string;
  declare release_id: string;
  declare status: InstanceStatus;
  declare status_reason: string | null;
  declare restart_count: number;
  declare cpu_percent: number | null;
  declare memory_mb: number | null;
  declare started_at: string | null;
  declare port: number | null;

  /**
   * One page of the application's instances without previews, or with `preview_id` those of one preview. @throws
   * invalid_cursor
   */
  static list(ctx: Context, { id, ...args }: QueryListApplicationInstancesArgs): Promise<Page<Instance>> {
    const whose = args.preview_id ? '' : ' and preview_id is null';
    const where = `project_id = :project_id and deleted_at is null${whose}`;
    const columns = columnsOf(tableOf(ctx, Instance.table));
    return page(
      Instance,
      ctx,
      args,
      { application_id: id },
      { from: Instance.table, where, columns, values: { project_id: ctx.project?.id } },
    );
  }
}
