// What a project uses of its quotas, and what the account is charged.
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { CatalogName } from '../../parts/catalog_name';
import { Page, Section, Table, Waiting } from '../../parts/page';
import { Ago, bytesText } from '../../parts/time';
import { words } from '../../parts/words';

const USAGE = graphql(`
  query Usage($id: ID!) {
    getProjectUsage(id: $id) {
      measured_at
      quotas {
        resource
        used
        limit
      }
    }
    billingSummary {
      currency
      current_month {
        from
        total
        lines {
          project_id
          project_name
          kind
          price_id
          hours
          price_hourly
          amount
        }
      }
      last_month {
        from
        total
      }
    }
  }
`);

type Usage = ResultOf<typeof USAGE>;

export function UsagePage({ id }: { id: string }) {
  const { data, error } = useQuery(USAGE, { id });
  return (
    <Page title="Usage" projectId={id} command={`svc api getProjectUsage ${id}`}>
      {!data && <Waiting error={error} rows={8} />}
      {data && <Quotas usage={data.getProjectUsage} />}
      {data && <Charges billing={data.billingSummary} />}
    </Page>
  );
}

function Quotas({ usage: { measured_at, quotas } }: { usage: Usage['getProjectUsage'] }) {
  return (
    <Section title="Quotas">
      <p class="faint">
        Measured <Ago time={measured_at} />.
      </p>
      <Table label="Quotas" head={['Resource', 'Used', 'Limit', 'Share']}>
        {quotas.map(({ resource, used, limit }) => (
          <tr key={resource}>
            <th scope="row">
              <span>{quotaText(resource)}</span>
            </th>
            <td>{amountText(resource, used)}</td>
            <td>{limit === null ? 'none' : amountText(resource, limit)}</td>
            <td>
              {limit !== null && limit > 0 && (
                <meter
                  min={0}
                  max={limit}
                  high={limit * 0.9}
                  value={used}
                  aria-label={`Used of ${quotaText(resource)}`}
                />
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

/** `volume_storage_gb` is "Volume storage"; its amounts have the unit. */
function quotaText(resource: string): string {
  return words(resource.replace(/_(?:gb|bytes)$/, ''));
}

function amountText(resource: string, amount: number): string {
  if (resource.endsWith('_bytes')) return bytesText(amount);
  return `${amount.toLocaleString('en')}${resource.endsWith('_gb') ? ' GB' : ''}`;
}

function Charges({ billing: { currency, current_month, last_month } }: { billing: Usage['billingSummary'] }) {
  const month = (from: string): string =>
    new Date(from).toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
  return (
    <Section title="Charges">
      <p>
        {month(current_month.from)} so far:{' '}
        <strong>
          {current_month.total} {currency}
        </strong>
        . {month(last_month.from)}: {last_month.total} {currency}. It is a summary, not an invoice.
      </p>
      {current_month.lines.length > 0 && (
        <Table label="Charges" head={['Project', 'What', 'Hours', 'Price an hour', currency]}>
          {current_month.lines.map((line) => (
            <tr key={`${line.project_id} ${line.kind} ${line.price_id}`}>
              <th scope="row">
                <span>{line.project_name}</span>
              </th>
              <td>
                {words(line.kind)}
                {line.kind !== 'volume' && (
                  <small class="faint">
                    {' '}
                    <CatalogName of="package" id={line.price_id} />
                  </small>
                )}
              </td>
              <td>{line.hours}</td>
              <td>{line.price_hourly}</td>
              <td>{line.amount}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
