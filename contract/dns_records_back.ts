// Changes of DNS records are taken back by batches: what was created is deleted, and so on.
import type { RowChange, Undo, UndoCall } from '../core/undo';
import type { Revert } from './revert';

/** Changes of one batch, as its input allows. */
const BATCH_MAX = 200;

export const recordsBack: Revert = ({ args, changes }) => {
  const id = args.id as string;
  const records = changes.filter((one) => one.kind === 'dns_record' && !isSame(one));
  if (!records.length) return 'unchanged';
  return {
    calls: batchesOf(records).map((part) => batchBack(id, part)),
    holds: [{ kind: 'dns_zone', id }],
    expected: records.map((one) => expectedRecord(id, one)),
  };
};

function isSame({ before, after }: RowChange): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}

/** In the order of a batch, so that what stands in the way of a record is gone before it. */
function batchesOf(records: readonly RowChange[]): RowChange[][] {
  const rank = ({ before, after }: RowChange): number => (!before ? 0 : after ? 1 : 2);
  const sorted = [...records].sort((one, other) => rank(one) - rank(other));
  const count = Math.ceil(sorted.length / BATCH_MAX);
  return Array.from({ length: count }, (_, index) => sorted.slice(index * BATCH_MAX, (index + 1) * BATCH_MAX));
}

function batchBack(id: string, records: readonly RowChange[]): UndoCall {
  const made = records.filter(({ before }) => !before);
  const changed = records.filter(({ before, after }) => before && after);
  const gone = records.filter(({ after }) => !after);
  const input = {
    ...(made.length && { delete: made.map((one) => one.id) }),
    ...(changed.length && { update: changed.map((one) => ({ ...withoutType(one.before), id: one.id })) }),
    ...(gone.length && { create: gone.map(({ before }) => before) }),
  };
  return { operation: 'batchDnsRecords', args: { id, input }, revive: gone.map((one) => one.id) };
}

/** It cannot change. */
function withoutType(record: RowChange['before']): Record<string, unknown> {
  const { type: _, ...fields } = record ?? {};
  return fields;
}

function expectedRecord(zoneId: string, { kind, id, after }: RowChange): Undo['expected'][number] {
  return { kind, by: { id }, values: after && { ...after, dns_zone_id: zoneId } };
}
