// The installation, for its operators: version, names, certificates, upgrade and rollback.
import { useEffect, useRef, useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useQuery } from '../../api/use_query';
import { Copyable } from '../../parts/copy';
import { Facts, Section, Table, Waiting } from '../../parts/page';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { installation } from '../../session';
import { AlarmsSummary } from './alarms';
import { OperatorPage } from './frame';
import { Change, Steps } from './upgrade';

const STATE = graphql(`
  query InstallationState {
    installationState {
      base_url
      apps_domain
      certificates {
        hostname
        expires_at
        reason
        needs_attention
      }
      expiring_certificates
      upgrade_obstacle
      version_before
      upgrade {
        kind
        from
        to
        outcome
        summary
        steps {
          title
          state
        }
        notes
        backup
        started_at
        ended_at
      }
    }
  }
`);

export type InstallationState = ResultOf<typeof STATE>['installationState'];
export type Upgrade = NonNullable<InstallationState['upgrade']>;

export function InstallationPage() {
  return (
    <OperatorPage title="Installation">
      <State />
    </OperatorPage>
  );
}

function State() {
  const { data, error, reload } = useQuery(STATE, {});
  const state = data?.installationState;
  const isMoving = state?.upgrade?.outcome === 'running';
  useMoving(isMoving, reload);
  const hasMoved = useRef(false);
  // The pages are those of the other release then.
  useEffect(() => {
    if (state?.upgrade && hasMoved.current && !isMoving) location.reload();
    hasMoved.current ||= isMoving;
  }, [state, isMoving]);
  if (!state) return <Waiting error={error} rows={8} />;
  return (
    <>
      {isMoving && error && (
        <p class="notice" role="status">
          The service does not answer at the moment, as while it restarts. This page goes on when it does.
        </p>
      )}
      <Versions state={state} reload={reload} />
      <AlarmsSummary />
      <Names state={state} />
      <Certificates state={state} />
    </>
  );
}

function Versions({ state, reload }: { state: InstallationState; reload(): Promise<void> }) {
  const shown = installation.value;
  const newer = shown?.newer_release ?? null;
  const { upgrade, upgrade_obstacle: obstacle, version_before: before } = state;
  const [asked, setAsked] = useState<'upgrade' | 'rollback' | null>(null);
  const isMoving = upgrade?.outcome === 'running';
  const canStart = obstacle === null && !isMoving;
  return (
    <Section title="Version">
      <Facts
        facts={[
          ['Version', shown?.version],
          ['Release before', before],
        ]}
      />
      {upgrade && <Steps upgrade={upgrade} />}
      {newer && !isMoving && (
        <>
          <h3>
            Version {newer.version} is available{newer.security === null ? '' : ', with changes to security'}
          </h3>
          {newer.changes && (
            <pre class="changes" tabIndex={0}>
              {newer.changes}
            </pre>
          )}
          {canStart ? (
            <p>
              <button type="button" onClick={() => setAsked('upgrade')}>
                Upgrade to {newer.version}
              </button>
            </p>
          ) : (
            <ByHand obstacle={obstacle} command={newer.command} />
          )}
        </>
      )}
      {!newer && !isMoving && <p class="faint">No newer version is known.</p>}
      {before && canStart && (
        <p>
          <button type="button" class="quiet" onClick={() => setAsked('rollback')}>
            Go back to {before}
          </button>
        </p>
      )}
      {asked === 'upgrade' && newer && (
        <Change kind="upgrade" version={newer.version} reload={reload} onClose={() => setAsked(null)} />
      )}
      {asked === 'rollback' && before && (
        <Change kind="rollback" version={before} reload={reload} onClose={() => setAsked(null)} />
      )}
    </Section>
  );
}

function ByHand({ obstacle, command }: { obstacle: string | null; command: string }) {
  return (
    <>
      <p>{obstacle}</p>
      <p>On an installed release, this command does it as root. An upgrade that fails is undone by itself.</p>
      <Copyable text={command} label="command" />
    </>
  );
}

function Names({ state: { base_url, apps_domain } }: { state: InstallationState }) {
  const missing = installation.value?.missing_domain;
  return (
    <Section title="Names">
      <Facts
        facts={[
          ['Dashboard and API', base_url],
          ['Applications', `<application>.${apps_domain}`],
        ]}
      />
      {missing && <p class="notice">{missing}</p>}
      <p>
        <a href="/installation/domain">{missing ? 'Give it a domain' : 'Change the domain'}</a>
      </p>
    </Section>
  );
}

function Certificates({
  state: { base_url, certificates, expiring_certificates: expiring },
}: {
  state: InstallationState;
}) {
  return (
    <Section title="Certificates">
      {certificates.length === 0 && (
        <p>
          {base_url.startsWith('https:')
            ? 'The platform has no certificates of its own: another program ends TLS, or files are set.'
            : 'There are none. They come with a domain.'}
        </p>
      )}
      {certificates.length > 0 && (
        <Table label="Certificates of the platform" head={['Name', 'State', 'Ends']}>
          {certificates.map((certificate) => (
            <CertificateRow key={certificate.hostname} {...certificate} />
          ))}
        </Table>
      )}
      {expiring > 0 && (
        <p class="notice bad">
          {expiring} certificates of domains and applications end soon and were not renewed. Their pages say why.
        </p>
      )}
    </Section>
  );
}

const UNPROVEN =
  'Its challenge is not delegated to the name server of the platform: each name below has a certificate of its own.';

function CertificateRow(certificate: InstallationState['certificates'][number]) {
  const { hostname, expires_at, reason, needs_attention } = certificate;
  // A wildcard that was never ordered, and is not missed.
  const isUnproven = hostname.startsWith('*.') && expires_at === null && reason === null;
  const note = isUnproven ? UNPROVEN : reason;
  return (
    <tr>
      <th scope="row">{hostname}</th>
      <td>
        <Status value={isUnproven ? 'none' : certificateState(expires_at, needs_attention)} />
        {note && <small class="reason">{note}</small>}
      </td>
      <td>
        <Ago time={expires_at} />
      </td>
    </tr>
  );
}

function certificateState(expires_at: string | null, needsAttention: boolean): string {
  if (needsAttention) return expires_at === null ? 'failed' : 'error';
  return expires_at === null ? 'pending' : 'issued';
}
