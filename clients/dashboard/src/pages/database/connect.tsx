// How to reach a database, for each kind of client.
import { useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Copyable } from '../../parts/copy';
import { Section, Waiting } from '../../parts/page';
import { ApplicationsOfDatabase } from '../attachments/list';
import { DatabaseFrame, type ShownDatabase } from './frame';

const CREDENTIALS = graphql(`
  query Credentials($id: ID!) {
    getDatabaseCredentials(id: $id) {
      username
      password
      database_name
      endpoints {
        endpoint_id
        name
        access
        host
        port
        connection_string
      }
    }
  }
`);

type Credentials = ResultOf<typeof CREDENTIALS>['getDatabaseCredentials'];
type Endpoint = Credentials['endpoints'][number];

const REACH: Record<string, string> = {
  private: 'Reachable for the applications of the project. An attachment sets its variables.',
  public: 'Reachable from the networks that the endpoint allows.',
};

export function Connect({ id }: { id: string }) {
  return (
    <DatabaseFrame id={id} section="Connect" command={(database) => `svc db url ${database}`}>
      {(shown) => (
        <>
          <ApplicationsOfDatabase id={id} projectId={shown.database.project_id} mayChange={shown.mayChange} />
          {shown.mayChange ? (
            <Endpoints shown={shown} />
          ) : (
            <p class="notice">The password is a secret: developers and owners of the project see it.</p>
          )}
        </>
      )}
    </DatabaseFrame>
  );
}

function Endpoints({ shown: { database } }: { shown: ShownDatabase }) {
  const { data, error } = useQuery(CREDENTIALS, { id: database.id });
  const [isShown, setShown] = useState(false);
  if (database.status === 'provisioning') return <p class="notice">The database is being created.</p>;
  if (!data) return <Waiting error={error} rows={6} />;
  const credentials = data.getDatabaseCredentials;
  return (
    <>
      <label class="check">
        <input type="checkbox" role="switch" checked={isShown} onChange={() => setShown(!isShown)} />
        Show the password
      </label>
      {credentials.endpoints.map((endpoint) => (
        <Section key={endpoint.endpoint_id} title={`${endpoint.name}, ${endpoint.access}`}>
          <p class="faint">{REACH[endpoint.access]}</p>
          <dl class="connect">
            {waysOf(database.engine, credentials, endpoint).map(([name, text]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <Copyable
                    label={`${name} of ${endpoint.name}`}
                    text={text}
                    shown={isShown ? text : hide(text, credentials.password)}
                  />
                </dd>
              </div>
            ))}
          </dl>
        </Section>
      ))}
    </>
  );
}

function waysOf(engine: string, given: Credentials, endpoint: Endpoint): [name: string, text: string][] {
  const { username, password, database_name } = given;
  const { host, port, connection_string } = endpoint;
  return [
    ['Connection string', connection_string],
    ['Command line', commandOf(engine, given, endpoint)],
    ['.env', `DATABASE_URL=${connection_string}`],
    ['Host', host],
    ['Port', String(port)],
    ['User', username],
    ['Password', password],
    ...(database_name ? ([['Database', database_name]] as [string, string][]) : []),
  ];
}

function commandOf(
  engine: string,
  { username, password, database_name }: Credentials,
  { host, port, connection_string }: Endpoint,
): string {
  if (engine === 'postgresql') return `psql '${connection_string}'`;
  if (engine === 'mariadb')
    return `mariadb --ssl -h ${host} -P ${port} -u ${username} -p'${password}' ${database_name ?? ''}`;
  return `redis-cli --tls -u '${connection_string}'`;
}

function hide(text: string, password: string): string {
  return text.replaceAll(encodeURIComponent(password), '••••••••').replaceAll(password, '••••••••');
}
