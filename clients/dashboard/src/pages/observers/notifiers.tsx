// The notifiers of an observer: chosen among those of the project, tested and created.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { NotifierChoice } from '../../parts/notifier_choice';
import { Section, Waiting } from '../../parts/page';
import { Ago } from '../../parts/time';
import { mayActAs } from '../../session';
import { NewNotifier } from './new_notifier';

const NOTIFIERS = graphql(`
  query Notifiers($id: ID!) {
    listNotifiers(project_id: $id, limit: 100, sort: "name") {
      data {
        id
        name
        type
        enabled
        last_delivery {
          at
          status
          error
        }
      }
    }
  }
`);
const SET_NOTIFIERS = graphql(`
  mutation SetNotifiers($id: ID!, $input: UpdateObserverInput!) {
    updateObserver(id: $id, input: $input) {
      id
    }
  }
`);
const TEST = graphql(`
  mutation TestNotifier($id: ID!) {
    testNotifier(id: $id) {
      status
      status_code
      error
    }
  }
`);

type Notifier = ResultOf<typeof NOTIFIERS>['listNotifiers']['data'][number];

interface Observer {
  id: string;
  project_id: string;
  notifier_ids: readonly string[];
}

export function ObserverNotifiers({ observer, reload }: { observer: Observer; reload(): Promise<void> }) {
  const { project_id } = observer;
  const loaded = useQuery(NOTIFIERS, { id: project_id });
  const notifiers = loaded.data?.listNotifiers.data;
  const mayChange = mayActAs('developer', project_id);
  const setNotifiers = async (ids: readonly string[]): Promise<void> => {
    await request(SET_NOTIFIERS, { id: observer.id, input: { notifier_ids: [...ids] } });
    await reload();
  };
  const made = async (id: string): Promise<void> => {
    await loaded.reload();
    await setNotifiers([...observer.notifier_ids, id]);
  };
  return (
    <Section title="Notifiers" actions={<a href={`/projects/${project_id}/resources/notifiers`}>All notifiers</a>}>
      {!notifiers && <Waiting error={loaded.error} rows={2} />}
      {notifiers && observer.notifier_ids.length === 0 && (
        <p class="notice">This observer has no notifiers{mayChange ? '. Choose one, or create one.' : '.'}</p>
      )}
      {notifiers && notifiers.length > 0 && mayChange && (
        // What somebody else has chosen meanwhile begins the form anew.
        <NotifierChoice
          key={observer.notifier_ids.join()}
          notifiers={notifiers}
          chosen={observer.notifier_ids}
          save={setNotifiers}
          about={(notifier) => (
            <>
              <Delivery notifier={notifier} />
              <Test notifier={notifier} tested={loaded.reload} />
            </>
          )}
        />
      )}
      {notifiers && !mayChange && <Names notifiers={notifiers} chosen={observer.notifier_ids} />}
      {notifiers && mayChange && <NewNotifier projectId={project_id} made={made} />}
    </Section>
  );
}

function Names({ notifiers, chosen }: { notifiers: readonly Notifier[]; chosen: readonly string[] }) {
  return (
    <ul class="notifiers">
      {notifiers
        .filter(({ id }) => chosen.includes(id))
        .map((notifier) => (
          <li key={notifier.id}>
            {notifier.name} <Delivery notifier={notifier} />
          </li>
        ))}
    </ul>
  );
}

function Delivery({ notifier: { type, enabled, last_delivery } }: { notifier: Notifier }) {
  return (
    <small class="faint">
      {type}
      {!enabled && ', switched off'}
      {last_delivery && (
        <>
          , {last_delivery.status} <Ago time={last_delivery.at} />
          {last_delivery.error && `: ${last_delivery.error}`}
        </>
      )}
    </small>
  );
}

function Test({ notifier: { id, name }, tested }: { notifier: Notifier; tested(): Promise<void> }) {
  const [outcome, setOutcome] = useState('');
  const action = useAction(async () => {
    setOutcome('');
    const { testNotifier } = await request(TEST, { id });
    const { status, error } = testNotifier;
    setOutcome(status === 'delivered' ? 'Delivered.' : (error ?? 'Not delivered.'));
    await tested();
  });
  return (
    <>
      <button type="button" class="quiet small" aria-disabled={action.isRunning} onClick={() => void action.run()}>
        Test<span class="off-screen"> {name}</span>
      </button>
      <small role="status">{action.error?.message ?? outcome}</small>
    </>
  );
}
