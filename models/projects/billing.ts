// Billing: what the noted quantities (models/base/metering.ts) cost at the prices of the catalogs.
import { prices } from '../../core/catalog/catalogs';
import type { Context, Identity } from '../../core/context';
import { named } from '../../db/statement';

export interface BillingLine {
  project_id: string;
  project_name: string;
  kind: string;
  price_id: string;
  hours: string;
  price_hourly: string;
  amount: string;
}

export interface BillingMonth {
  from: string;
  to: string;
  total: string;
  lines: BillingLine[];
}

const HOUR_MS = 3_600_000n;
const HOURS_DECIMALS = 3;
const AMOUNT_DECIMALS = 4;

// Milliseconds are whole, so the sums are exact. An open span runs until the end of the period.
const SUMS = named(`select p.id as project_id, p.name as project_name, s.kind, s.price_id,
    sum(s.quantity * round(extract(epoch from least(coalesce(s.ended_at, $3), $3) - greatest(s.started_at,
      $2)) * 1000)::bigint)::text as unit_ms
  from usage_spans s join projects p on p.id = s.project_id
  where p.account_id = $1 and s.started_at < $3 and coalesce(s.ended_at, 'infinity') > $2
  group by p.id, p.name, s.kind, s.price_id order by p.id, s.kind, s.price_id`);

/** What the account's projects cost, deleted ones included, in this and the last calendar month (UTC). */
export async function billingSummary(
  ctx: Context,
  now = new Date(),
): Promise<{ account_id: string; currency: string; current_month: BillingMonth; last_month: BillingMonth }> {
  const { account_id } = ctx.identity as Identity;
  const begin = monthBegin(now, 0);
  return {
    account_id,
    currency: prices.currency,
    current_month: await month(ctx, account_id, begin, now),
    last_month: await month(ctx, account_id, monthBegin(now, -1), begin),
  };
}

/**
 * Cost of a time: units × milliseconds × price an hour, rounded once, half up, to 1/10000 of the currency.
 * @param unitMs units times milliseconds
 * @param hourly decimal string
 */
export function amountOf(unitMs: bigint, hourly: string): string {
  const { value, scale } = parseDecimal(hourly);
  return decimal(unitMs * value, HOUR_MS * scale, AMOUNT_DECIMALS);
}

async function month(ctx: Context, accountId: string, from: Date, to: Date): Promise<BillingMonth> {
  const sums = await ctx.sql.query<Omit<BillingLine, 'hours' | 'price_hourly' | 'amount'> & { unit_ms: string }>(SUMS, [
    accountId,
    from.toISOString(),
    to.toISOString(),
  ]);
  const lines = sums.map(({ unit_ms, ...line }) => {
    const price_hourly = priceOf(line.price_id);
    return {
      ...line,
      hours: decimal(BigInt(unit_ms), HOUR_MS, HOURS_DECIMALS),
      price_hourly,
      amount: amountOf(BigInt(unit_ms), price_hourly),
    };
  });
  return { from: from.toISOString(), to: to.toISOString(), total: totalOf(lines), lines };
}

/** The sum of the rounded lines, so that it equals the sum of the displayed amounts. */
function totalOf(lines: BillingLine[]): string {
  const total = lines.reduce((sum, { amount }) => sum + parseDecimal(amount).value, 0n);
  return decimal(total, 10n ** BigInt(AMOUNT_DECIMALS), AMOUNT_DECIMALS);
}

function priceOf(id: string): string {
  const price = id === 'volume_gb' ? prices.volume_gb_hourly : prices.hourly[id];
  if (price === undefined) throw new Error(`no price for ${id}`);
  return price;
}

function monthBegin(now: Date, offset: number): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, 1));
}

function parseDecimal(text: string): { value: bigint; scale: bigint } {
  const [whole = '0', fraction = ''] = text.split('.');
  return { value: BigInt(whole + fraction), scale: 10n ** BigInt(fraction.length) };
}

/** numerator / denominator rounded half up to `decimals` digits; not negative. */
function decimal(numerator: bigint, denominator: bigint, decimals: number): string {
  const scale = 10n ** BigInt(decimals);
  const rounded = (numerator * scale * 2n + denominator) / (denominator * 2n);
  return `${rounded / scale}.${String(rounded % scale).padStart(decimals, '0')}`;
}
