// An email domain: the records to set with what the DNS answers, and its settings.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { DangerZone } from '../../parts/danger_zone';
import { Confirm } from '../../parts/dialog';
import { DnsInstructions } from '../../parts/dns_instructions';
import { Check, Problem } from '../../parts/form';
import { Facts, Page, Section, Waiting } from '../../parts/page';
import { Protection } from '../../parts/protection';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { undoOfDelete } from '../../parts/undo';
import { navigate } from '../../router';
import { mayActAs } from '../../session';

const DOMAIN = graphql(`
  query EmailDomain($id: ID!) {
    getEmailDomain(id: $id) {
      id
      project_id
      name
      return_path_subdomain
      open_tracking
      click_tracking
      deletion_protection
      dkim_selector
      dns
      status
      status_reason
      last_checked_at
      verified_at
      dns_records {
        purpose
        type
        name
        value
        priority
        status
        observed_values
      }
    }
  }
`);
const VERIFY = graphql(`
  mutation VerifyEmailDomain($id: ID!) {
    verifyEmailDomain(id: $id) {
      id
    }
  }
`);
const ROTATE = graphql(`
  mutation RotateDkim($id: ID!) {
    rotateEmailDomainDkim(id: $id) {
      id
    }
  }
`);
const UPDATE = graphql(`
  mutation UpdateEmailDomain($id: ID!, $input: UpdateEmailDomainInput!) {
    updateEmailDomain(id: $id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteEmailDomain($id: ID!) {
    deleteEmailDomain(id: $id)
  }
`);

type Domain = ResultOf<typeof DOMAIN>['getEmailDomain'];
interface Shown {
  domain: Domain;
  mayChange: boolean;
  reload(): Promise<void>;
}

export function EmailDomain({ id }: { id: string }) {
  const { data, error, reload } = useQuery(DOMAIN, { id });
  const domain = data?.getEmailDomain;
  const mayChange = mayActAs('developer', domain?.project_id);
  return (
    <Page
      title={domain?.name ?? 'Domain'}
      beside={domain && <Status value={domain.status} title={domain.status_reason} />}
      trail={domain ? [{ href: `/projects/${domain.project_id}/email_domains`, label: 'Email domains' }] : []}
      projectId={domain?.project_id}
      command={`svc api getEmailDomain ${id}`}
    >
      {!domain && <Waiting error={error} rows={6} />}
      {domain && <Records domain={domain} mayChange={mayChange} reload={reload} />}
      {domain && <Tracking domain={domain} mayChange={mayChange} reload={reload} />}
      {domain && mayChange && <Danger domain={domain} reload={reload} />}
    </Page>
  );
}

function Records({ domain, mayChange, reload }: Shown) {
  const [asks, setAsks] = useState(false);
  const verify = useAction(async () => {
    await request(VERIFY, { id: domain.id });
    await reload();
  });
  const rotate = async (): Promise<void> => {
    await request(ROTATE, { id: domain.id });
    await reload();
  };
  const actions = mayChange && (
    <>
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Rotate DKIM key
      </button>
      <button type="button" class="quiet small" aria-disabled={verify.isRunning} onClick={() => void verify.run()}>
        Check now
      </button>
    </>
  );
  return (
    <Section title="Records" actions={actions}>
      <Problem error={verify.error} />
      {domain.status_reason && <p class="notice">{domain.status_reason}</p>}
      <p>
        {domain.dns === 'automatic'
          ? 'The platform keeps these records in the zone, where it has it.'
          : 'Set these records where the DNS of the domain is kept.'}
      </p>
      <DnsInstructions records={domain.dns_records} label="Records to set" />
      <Facts
        facts={[
          ['Checked', <Ago time={domain.last_checked_at} />],
          ['Verified', <Ago time={domain.verified_at} />],
          ['DKIM selector', domain.dkim_selector],
          ['Return path', `${domain.return_path_subdomain}.${domain.name}`],
        ]}
      />
      {asks && (
        <Confirm title="Rotate the DKIM key?" verb="Rotate" work={rotate} onClose={() => setAsks(false)}>
          You have to set a new DKIM record. Mail is signed with the present key until the new record is found.
        </Confirm>
      )}
    </Section>
  );
}

function Tracking({ domain, mayChange, reload }: Shown) {
  const change = useAction(async (input: { open_tracking: boolean } | { click_tracking: boolean }) => {
    await request(UPDATE, { id: domain.id, input });
    await reload();
  });
  return (
    <Section title="Tracking">
      <fieldset class="bare" disabled={!mayChange}>
        <Check
          label="Open tracking"
          name="open_tracking"
          checked={domain.open_tracking}
          hint="Adds a picture of one pixel to HTML messages."
          onChange={(event) => void change.run({ open_tracking: event.currentTarget.checked })}
        />
        <Check
          label="Click tracking"
          name="click_tracking"
          checked={domain.click_tracking}
          hint="Links lead through the platform."
          onChange={(event) => void change.run({ click_tracking: event.currentTarget.checked })}
        />
      </fieldset>
      <Problem error={change.error} />
    </Section>
  );
}

function Danger({ domain, reload }: { domain: Domain; reload(): Promise<void> }) {
  const { id, name, project_id, deletion_protection } = domain;
  return (
    <DangerZone
      kind="domain"
      name={name}
      projectId={project_id}
      consequence="No mail is accepted from its addresses any more."
      warning="Its signing key goes with it."
      isProtected={deletion_protection}
      remove={async () => {
        await request(DELETE, { id });
        navigate(`/projects/${project_id}/email_domains`);
      }}
      findUndo={() => undoOfDelete(project_id, id, () => navigate(`/email_domains/${id}`))}
    >
      <Protection
        kind="domain"
        isOn={deletion_protection}
        set={async (on) => {
          await request(UPDATE, { id, input: { deletion_protection: on } });
          await reload();
        }}
      />
    </DangerZone>
  );
}
