// What a person has to do something about, in one list: "is it well?" is answered without a click.
import { graphql, type ResultOf } from '../api/graphql';
import { FULL_SHARE, shareUsed } from './disk';
import { Icon } from './icon';

/** What is asked of an application for it; `$parts` of its domains and schedules. */
export const APPLICATION_FACTS = graphql(`
  fragment ApplicationFacts on Application {
    id
    name
    status
    status_reason
    latest_deployment {
      id
      number
      status
      status_reason
    }
    domains(limit: $parts) {
      hostname
      status
      certificate {
        status
        expires_at
      }
    }
    schedules(limit: $parts) {
      id
      name
      failures_in_a_row
    }
  }
`);
/** What is asked of a volume. */
export const VOLUME_FACTS = graphql(`
  fragment VolumeFacts on Volume {
    id
    name
    size_gb
    used_bytes
    over_quota
  }
`);

/** What is asked of a database. */
export const DATABASE_FACTS = graphql(`
  fragment DatabaseFacts on Database {
    id
    name
    status
    storage_gb
    storage_used_bytes
  }
`);

type ApplicationFacts = ResultOf<typeof APPLICATION_FACTS>;
type VolumeFacts = ResultOf<typeof VOLUME_FACTS>;
type DatabaseFacts = ResultOf<typeof DATABASE_FACTS>;

export interface Trouble {
  text: string;
  href: string;
}

const EXPIRES_MS = 7 * 86_400_000;

export function troublesOfApplication(application: ApplicationFacts): Trouble[] {
  const { id, name, status, status_reason: reason, latest_deployment: last, domains, schedules } = application;
  const href = `/applications/${id}`;
  const found: Trouble[] = [];
  if (status === 'crashed') found.push({ text: `${name} has crashed. ${reason ?? ''}`.trim(), href: `${href}/logs` });
  else if (reason) found.push({ text: `${name}: ${reason}`, href: `${href}/logs` });
  if (last?.status === 'failed')
    found.push({ text: `Deployment #${last.number} of ${name} failed.`, href: `${href}/deployments/${last.id}` });
  for (const domain of domains)
    found.push(...domainTroubles(domain).map((text) => ({ text, href: `${href}/domains` })));
  for (const schedule of schedules.filter(({ failures_in_a_row }) => failures_in_a_row > 0)) {
    const times = schedule.failures_in_a_row === 1 ? 'the last time' : `${schedule.failures_in_a_row} times in a row`;
    const text = `The schedule ${schedule.name} of ${name} failed ${times}.`;
    found.push({ text, href: `${href}/schedules/${schedule.id}` });
  }
  return found;
}

function domainTroubles({ hostname, status, certificate }: ApplicationFacts['domains'][number]): string[] {
  if (status !== 'active') return [`${hostname} has no DNS records that lead here.`];
  if (certificate.status === 'failed') return [`${hostname} has no certificate: the last request failed.`];
  const left = certificate.expires_at ? Date.parse(certificate.expires_at) - Date.now() : Infinity;
  return left < EXPIRES_MS ? [`The certificate of ${hostname} expires soon and was not renewed.`] : [];
}

export function troublesOfVolume({ id, name, size_gb, used_bytes }: VolumeFacts, projectId: string): Trouble[] {
  const href = `/projects/${projectId}/resources/volumes/${id}`;
  return fullTexts(`The volume ${name}`, used_bytes, size_gb).map((text) => ({ text, href }));
}

export function troublesOfDatabase({ id, name, status, storage_gb, storage_used_bytes }: DatabaseFacts): Trouble[] {
  const href = `/databases/${id}`;
  const texts = [
    ...(status === 'failed' ? [`The database ${name} has failed.`] : []),
    ...fullTexts(`The storage of the database ${name}`, storage_used_bytes, storage_gb),
  ];
  return texts.map((text) => ({ text, href }));
}

function fullTexts(disk: string, usedBytes: number | null, sizeGb: number): string[] {
  const share = shareUsed(usedBytes, sizeGb);
  return share < FULL_SHARE ? [] : [`${disk} is ${Math.floor(share * 100)} % full.`];
}

/** @param well what is said where nothing is wrong */
export function Attention({ troubles, well }: { troubles: readonly Trouble[]; well: string }) {
  if (!troubles.length) {
    return (
      <p class="well" role="status">
        <Icon name="well" /> {well}
      </p>
    );
  }
  return (
    <section class="notice bad attention" aria-label="Needs attention">
      <h2>
        <Icon name="attention" /> Needs attention
      </h2>
      <ul>
        {troubles.map(({ text, href }) => (
          <li key={text}>
            <a href={href}>{text}</a>
          </li>
        ))}
      </ul>
    </section>
  );
}
