// A call that waits for an owner: what it is, who asks, what it would do, and the two answers.
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery, type Action } from '../../api/use_query';
import { Field, Form, Problem, Submit, useFields } from '../../parts/form';
import { Facts, Page, Section, Waiting } from '../../parts/page';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { mayActAs, viewer } from '../../session';
import { projectFlag } from '../../parts/command';

const APPROVAL = graphql(`
  query Approval($id: ID!) {
    getApproval(id: $id) {
      id
      status
      operation
      summary
      input {
        name
        value
      }
      if_match
      resource {
        type
        id
        name
      }
      affects {
        type
        count
      }
      requested_by {
        name
      }
      key_id
      decided_by {
        name
      }
      expires_at
      used_at
      created_at
    }
  }
`);
const APPROVE = graphql(`
  mutation ApproveCall($id: ID!, $code: String) {
    approveCall(id: $id, input: { code: $code }) {
      status
    }
  }
`);
const REFUSE = graphql(`
  mutation RefuseCall($id: ID!) {
    refuseCall(id: $id) {
      status
    }
  }
`);

type Approval = ResultOf<typeof APPROVAL>['getApproval'];

/** It is used or decided about elsewhere. */
const POLL_MS = 5_000;

export function ApprovalPage({ id, approval_id }: { id: string; approval_id: string }) {
  const { data, error, reload } = useQuery(APPROVAL, { id: approval_id }, POLL_MS);
  const approval = data?.getApproval;
  const trail = [{ href: `/projects/${id}/approvals`, label: 'Approvals' }];
  return (
    <Page
      title={approval?.summary ?? 'Approval'}
      beside={approval && <Status value={approval.status} />}
      trail={trail}
      projectId={id}
      command={`svc approve show ${approval_id}${projectFlag(id)}`}
    >
      {!approval && <Waiting error={error} />}
      {approval && <Call approval={approval} />}
      {approval && <Decision id={id} approval={approval} reload={reload} />}
    </Page>
  );
}

function Call({ approval }: { approval: Approval }) {
  const { operation, resource, input, affects, if_match, requested_by, key_id, created_at } = approval;
  return (
    <>
      <Section title="The call">
        <Facts
          facts={[
            ['Operation', <code>{operation}</code>],
            ...(resource ? ([[resource.type.replace(/_/g, ' '), resource.name ?? resource.id]] as const) : []),
            ...input.map(({ name, value }) => [name, <code>{value}</code>] as const),
            ...(if_match ? ([['If-Match', <code>{if_match}</code>]] as const) : []),
            ['Asked by', requested_by.name],
            ['With the key', key_id && <code>{key_id}</code>],
            ['Asked', <Ago time={created_at} />],
          ]}
        />
      </Section>
      <Section title="What it would do">
        <p>{affects.length ? 'A rehearsal changed or removed:' : 'A rehearsal changed no resource.'}</p>
        <ul>
          {affects.map(({ type, count }) => (
            <li key={type}>
              {count} {type.replace(/_/g, ' ')}
              {count === 1 ? '' : 's'}
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

interface DecisionProps {
  id: string;
  approval: Approval;
  reload(): Promise<void>;
}

function Decision({ id, approval, reload }: DecisionProps) {
  const { status, decided_by } = approval;
  const refuse = useAction(async () => {
    await request(REFUSE, { id: approval.id });
    await reload();
  });
  const mayDecide = mayActAs('owner', id);
  return (
    <Section title="Decision">
      {status === 'pending' && !mayDecide && <p>An owner of the project decides about this call.</p>}
      {status === 'pending' && mayDecide && <Approving approval={approval} refuse={refuse} reload={reload} />}
      {status === 'approved' && (
        <>
          <p>
            {decided_by?.name} has approved this call. It passes once, until <Ago time={approval.expires_at} />.
          </p>
          {mayDecide && <RefuseButton action={refuse} label="Refuse it after all" />}
        </>
      )}
      {status === 'refused' && <p>{decided_by?.name} has refused this call.</p>}
      {status === 'used' && (
        <p>
          {decided_by?.name} has approved this call, and it was made <Ago time={approval.used_at} />.
        </p>
      )}
      {status === 'expired' && <p>Its time is over. Who wants to make the call asks once more by repeating it.</p>}
      <Problem error={refuse.error} />
    </Section>
  );
}

interface ApprovingProps {
  approval: Approval;
  refuse: Action<void>;
  reload(): Promise<void>;
}

function Approving({ approval, refuse, reload }: ApprovingProps) {
  const fields = useFields({ code: '' });
  const asksCode = viewer.value?.two_factor_enabled === true;
  const action = useAction(async () => {
    await request(APPROVE, { id: approval.id, code: asksCode ? fields.values.code.trim() : null });
    await reload();
  });
  return (
    <Form action={action} isFleeting>
      <p>If you approve it, the caller can make exactly this call once within an hour.</p>
      {asksCode && (
        <Field
          label="Two-factor code"
          {...fields.of('code', action)}
          required
          autocomplete="one-time-code"
          inputMode="numeric"
        />
      )}
      <Problem error={action.error} fields={['code']} />
      <footer class="actions">
        <RefuseButton action={refuse} label="Refuse" />
        <Submit action={action}>Approve</Submit>
      </footer>
    </Form>
  );
}

function RefuseButton({ action, label }: { action: Action<void>; label: string }) {
  return (
    <button type="button" class="quiet" aria-disabled={action.isRunning} onClick={() => void action.run()}>
      {label}
    </button>
  );
}
