// The domain of the installation: what it needs, what is there already, and the way there.
import { useEffect, useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { CopyButton } from '../../parts/copy';
import { Check, Field, useFields } from '../../parts/form';
import { Section, Table, Waiting } from '../../parts/page';
import { Status } from '../../parts/status';
import { navigate } from '../../router';
import { viewer } from '../../session';
import { OperatorPage } from './frame';
import { storedSetup, storeSetup } from './stored_setup';
import { WithPassword } from './upgrade';

const OBSTACLE = graphql(`
  query SetupObstacle {
    installationState {
      base_url
      setup_obstacle
    }
  }
`);
const PLAN = graphql(`
  query SetupPlan($input: SetupInput!) {
    setupPlan(input: $input) {
      address
      records {
        name
        type
        value
        purpose
      }
      names {
        name
        status
        detail
      }
      settings {
        name
        value
      }
    }
  }
`);
const SET_UP = graphql(`
  mutation SetUpInstallation($input: SetupInput!, $password: String!) {
    setUpInstallation(input: $input, password: $password) {
      token
      address
    }
  }
`);
const CHECK_AGAIN_MS = 5_000;

type Plan = ResultOf<typeof PLAN>['setupPlan'];
interface Input {
  domain: string;
  apps_domain: string | null;
  email: string | null;
  ips: string[] | null;
  name_server: boolean;
}

export function SetupPage() {
  const isUnderWay = storedSetup.value !== null;
  useEffect(() => {
    if (isUnderWay) navigate('/installation/domain/progress', 'replace');
  }, [isUnderWay]);
  return <OperatorPage title="Domain">{!isUnderWay && <Choice />}</OperatorPage>;
}

function Choice() {
  const fields = useFields({ domain: '', email: viewer.value?.user.email ?? '', apps_domain: '', ips: '' });
  const [hasServer, setHasServer] = useState(false);
  const [input, setInput] = useState<Input | null>(null);
  const { data, error } = useQuery(OBSTACLE, {});
  const state = data?.installationState;
  const show = (event: SubmitEvent): void => {
    event.preventDefault();
    const { domain, email, apps_domain, ips } = fields.values;
    const addresses = ips.split(/[\s,]+/).filter(Boolean);
    setInput({
      domain: domain.trim(),
      ...{ apps_domain: apps_domain.trim() || null, email: email.trim() || null },
      ips: addresses.length ? addresses : null,
      name_server: hasServer,
    });
  };
  if (!state) return <Waiting error={error} rows={6} />;
  return (
    <>
      <p>
        With a domain, the dashboard and the applications are reached by name over HTTPS. Nothing is changed before
        everything was checked, and what does not work is taken back.
      </p>
      <form onSubmit={show}>
        <div class="columns">
          <Field label="Domain" {...fields.of('domain')} required placeholder="example.com" />
          <Field
            label="E-mail address"
            {...fields.of('email')}
            hint="Where the certificate authority writes to. May be empty."
          />
        </div>
        <More fields={fields} hasServer={hasServer} setHasServer={setHasServer} />
        <p>
          <button type="submit">{input ? 'Show the records again' : 'Show what it needs'}</button>
        </p>
      </form>
      {input && <Planned key={JSON.stringify(input)} input={input} obstacle={state.setup_obstacle} />}
    </>
  );
}

interface MoreProps {
  fields: Pick<ReturnType<typeof useFields<{ domain: string; apps_domain: string; ips: string }>>, 'values' | 'of'>;
  hasServer: boolean;
  setHasServer(value: boolean): void;
}

function More({ fields, hasServer, setHasServer }: MoreProps) {
  return (
    <details>
      <summary>More</summary>
      <div class="columns">
        <Field
          label="Domain of applications"
          {...fields.of('apps_domain')}
          placeholder={`apps.${fields.values.domain || 'example.com'}`}
          hint="Better a domain of their own."
        />
        <Field
          label="Public addresses"
          {...fields.of('ips')}
          hint="Of this machine, or of the router in front. Empty: those of its network."
        />
      </div>
      <Check
        label="One certificate for all applications"
        name="name_server"
        checked={hasServer}
        onChange={(event) => setHasServer(event.currentTarget.checked)}
        hint={
          'Three more records let the name server of the platform prove the domain, and serve DNS zones. Port 53 ' +
          'must be open. Without them each application has a certificate of its own.'
        }
      />
    </details>
  );
}

interface PlannedProps {
  input: Input;
  obstacle: string | null;
}

function Planned({ input, obstacle }: PlannedProps) {
  const { data, error } = useQuery(PLAN, { input }, CHECK_AGAIN_MS);
  const [asks, setAsks] = useState(false);
  const detail = error?.errors.map((one) => one.detail).join(' ');
  if (error && detail) {
    return (
      <div class="notice bad" role="alert">
        {detail}
      </div>
    );
  }
  const plan = data?.setupPlan;
  if (!plan) return <Waiting error={error} rows={6} />;
  const open = plan.names.filter(({ status }) => status !== 'ok');
  const start = async (password: string): Promise<void> =>
    storeSetup((await request(SET_UP, { input, password })).setUpInstallation);
  return (
    <>
      <Records plan={plan} />
      <Names plan={plan} />
      {obstacle === null ? (
        <p>
          <button type="button" disabled={open.length > 0} onClick={() => setAsks(true)}>
            Set up {plan.address}
          </button>
          {open.length > 0 && <span class="faint"> Once all names lead to this machine.</span>}
        </p>
      ) : (
        <ByHand plan={plan} obstacle={obstacle} domain={input.domain} />
      )}
      {asks && (
        <WithPassword title={`Set up ${plan.address}?`} verb="Set up" work={start} onClose={() => setAsks(false)}>
          This accepts the terms of service of the certificate authority and restarts the service. Applications serve
          on. The dashboard moves to {plan.address}, where you log in again.
        </WithPassword>
      )}
    </>
  );
}

function Records({ plan: { records } }: { plan: Plan }) {
  return (
    <Section title="Records to make at the DNS provider">
      <Table label="DNS records" head={['Name', 'Type', 'Value', 'For', '']}>
        {records.map(({ name, type, value, purpose }) => (
          <tr key={`${name} ${value}`}>
            <th scope="row">{name}</th>
            <td>{type}</td>
            <td>{value}</td>
            <td>{purpose}</td>
            <td>
              <CopyButton text={value} label={`value of ${name}`} />
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

const STATUSES = { ok: 'ok', missing: 'waiting', wrong: 'elsewhere', unanswered: 'error' } as const;

function Names({ plan: { names } }: { plan: Plan }) {
  return (
    <Section title="Where the names lead">
      <p class="faint">Asked anew every few seconds. A new record may take minutes to be seen.</p>
      <Table label="Names" head={['Name', 'State']}>
        {names.map(({ name, status, detail }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>
              <Status value={STATUSES[status]} />
              <small class="reason">{detail}</small>
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function ByHand({ plan, obstacle, domain }: { plan: Plan; obstacle: string; domain: string }) {
  const text = plan.settings.map(({ name, value }) => `${name}=${value}`).join('\n');
  return (
    <Section title="What to do by hand">
      <p>{obstacle}</p>
      <p>
        Start the service with these settings. <code>platform setup --domain {domain} --check</code>, in a checkout{' '}
        <code>npm run cli -- setup --domain {domain} --check</code>, checks ports, clock and certificate authority
        first.
      </p>
      <pre tabIndex={0} class="changes">
        {text}
      </pre>
      <CopyButton text={text} label="settings" />
    </Section>
  );
}
