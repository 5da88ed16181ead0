// Metering: how long resources had which quantity. What that costs: models/projects/billing.ts.
import type { Context } from '../../core/context';
import type { Resource } from './resource';
import { sessionOf, type Values } from '../../db/table';
import { named } from '../../db/statement';

/** What a kind charges for, stated as `static billing` of its class. */
export interface Billing {
  /** Entry of the price list: `volume_gb`; or the column that names it. */
  price: string | { column: string };
  /** Column with the number of units. */
  quantity: string;
}

const CLOSE = named('update usage_spans set ended_at = now() where resource_id = $1 and ended_at is null');
const OPEN = named(
  'insert into usage_spans (project_id, kind, resource_id, price_id, quantity) values ($1, $2, $3, $4, $5)',
);

/**
 * Notes, in the transaction of a change, how much of it is charged from now on.
 * @param changes values that were written; null when the row is removed
 */
export function meter(ctx: Context, resource: Resource, changes: Values | null): void {
  const { billing, kind } = resource.constructor as unknown as { billing?: Billing; kind: string };
  if (!billing || (changes && !isCharged(billing, changes))) return;
  const fresh = changes !== null && resource.version === 1;
  if (!fresh) sessionOf(ctx).send(CLOSE, [resource.id]);
  const row = resource as unknown as Values;
  const quantity = changes ? Number(row[billing.quantity]) : 0;
  const price = typeof billing.price === 'string' ? billing.price : row[billing.price.column];
  if (quantity > 0) sessionOf(ctx).send(OPEN, [resource.project_id, kind, resource.id, price, quantity]);
}

/** Ends what is charged for a resource that was kept after its deletion. */
export async function endCharge(sql: Context['sql'], resourceId: string): Promise<void> {
  await sql.query(CLOSE, [resourceId]);
}

function isCharged({ price, quantity }: Billing, changes: Values): boolean {
  return changes[quantity] !== undefined || (typeof price !== 'string' && changes[price.column] !== undefined);
}
