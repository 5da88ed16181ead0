// A DNS zone: its delegation, its records with an editor, its file.
import { useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../../api/graphql';
import { request } from '../../api/client';
import { useAction, useQuery } from '../../api/use_query';
import { Copyable } from '../../parts/copy';
import { DangerZone } from '../../parts/danger_zone';
import { Problem } from '../../parts/form';
import { Facts, Page, Section, Waiting } from '../../parts/page';
import { Protection } from '../../parts/protection';
import { Status, StatusReason } from '../../parts/status';
import { Ago } from '../../parts/time';
import { undoOfDelete } from '../../parts/undo';
import { navigate } from '../../router';
import { mayActAs } from '../../session';
import { Records } from './records';
import { ZoneFile } from './zone_file';

const ZONE = graphql(`
  query DnsZone($id: ID!) {
    getDnsZone(id: $id) {
      id
      project_id
      name
      default_ttl
      deletion_protection
      name_servers
      serial
      record_count
      dnssec_status
      status
      status_reason
      last_checked_at
      delegation {
        state
        observed_name_servers
      }
    }
  }
`);
const VERIFY = graphql(`
  mutation VerifyZone($id: ID!) {
    verifyDnsZone(id: $id) {
      id
    }
  }
`);

const DELETE = graphql(`
  mutation DeleteDnsZone($id: ID!) {
    deleteDnsZone(id: $id)
  }
`);
const PROTECT = graphql(`
  mutation ProtectZone($id: ID!, $input: UpdateDnsZoneInput!) {
    updateDnsZone(id: $id, input: $input) {
      id
    }
  }
`);

export type ZoneData = ResultOf<typeof ZONE>['getDnsZone'];

const STATES: Record<string, string> = {
  unknown: 'The delegation has not been checked yet.',
  not_delegated: 'The parent zone has no name servers for this domain: set those below at the registrar.',
  delegated: 'The parent zone delegates to the name servers of the platform.',
  partial: 'The parent zone names only some of these name servers, or others too.',
  elsewhere: 'The parent zone delegates to other name servers: the records here are not served.',
};

export function DnsZone({ id }: { id: string }) {
  const { data, error, reload } = useQuery(ZONE, { id });
  const [imports, setImports] = useState(0);
  const zone = data?.getDnsZone;
  const imported = (): void => {
    setImports((before) => before + 1);
    void reload();
  };
  const mayChange = mayActAs('developer', zone?.project_id);
  return (
    <Page
      title={zone?.name ?? 'Zone'}
      beside={zone && <Status value={zone.status} title={zone.status_reason} />}
      trail={zone ? [{ href: `/projects/${zone.project_id}/dns`, label: 'DNS' }] : []}
      projectId={zone?.project_id}
      command={`svc api listDnsRecords ${id}`}
    >
      {!zone && <Waiting error={error} rows={6} />}
      {zone && <Delegation zone={zone} mayChange={mayChange} reload={reload} />}
      {zone && <Records key={imports} zone={zone} mayChange={mayChange} changed={reload} />}
      {zone && <ZoneFile zone={zone} mayChange={mayChange} imported={imported} />}
      {zone && mayChange && <Danger zone={zone} reload={reload} />}
    </Page>
  );
}

function Danger({ zone, reload }: { zone: ZoneData; reload(): Promise<void> }) {
  const { id, name, project_id, deletion_protection } = zone;
  return (
    <DangerZone
      kind="zone"
      name={name}
      projectId={project_id}
      consequence="Its records go with it, and its name servers no longer answer for the domain."
      isProtected={deletion_protection}
      remove={async () => {
        await request(DELETE, { id });
        navigate(`/projects/${project_id}/dns`);
      }}
      findUndo={() => undoOfDelete(project_id, id, () => navigate(`/dns/${id}`))}
    >
      <Protection
        kind="zone"
        isOn={deletion_protection}
        set={async (on) => {
          await request(PROTECT, { id, input: { deletion_protection: on } });
          await reload();
        }}
      />
    </DangerZone>
  );
}

interface DelegationProps {
  zone: ZoneData;
  mayChange: boolean;
  reload(): Promise<void>;
}

function Delegation({ zone, mayChange, reload }: DelegationProps) {
  const verify = useAction(async () => {
    await request(VERIFY, { id: zone.id });
    await reload();
  });
  const check = mayChange && (
    <button type="button" class="quiet small" aria-disabled={verify.isRunning} onClick={() => void verify.run()}>
      Check now
    </button>
  );
  return (
    <Section title="Delegation" actions={check}>
      <Problem error={verify.error} />
      <p>
        <StatusReason value={zone.delegation.state} reason={STATES[zone.delegation.state]} />
      </p>
      {zone.status_reason && <p class="notice">{zone.status_reason}</p>}
      {zone.name_servers.map((server) => (
        <Copyable key={server} text={server} label={`name server ${server}`} />
      ))}
      <Facts
        facts={[
          ['Found in the parent zone', zone.delegation.observed_name_servers.join(', ') || 'nothing yet'],
          ['Checked', <Ago time={zone.last_checked_at} />],
          ['DNSSEC', zone.dnssec_status],
          ['Default TTL', `${zone.default_ttl} s`],
          ['Serial', zone.serial],
        ]}
      />
    </Section>
  );
}
