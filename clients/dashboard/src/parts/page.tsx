// The frame of each page: where one is, its title and actions, and "as API call".
import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { ApiError } from '../api/client';
import { pageProject, subject, type Tab } from '../place';
import { projectOf } from '../session';
import { ApiCalls } from './api_calls';
import { ResourceName } from './resource_name';
import { RoleNote } from './role_note';

export { Table } from './table';
export type { Tab };

interface PageProps {
  title: string;
  /** Stands behind the title, such as a status. */
  beside?: ComponentChildren;
  trail?: readonly Tab[];
  /** Pages of the same thing: the side bar shows them. */
  tabs?: readonly Tab[];
  actions?: ComponentChildren;
  projectId?: string | undefined;
  /** Command of `svc` that shows the same. */
  command?: string;
  children: ComponentChildren;
}

const NOT_FOUND = new ApiError('not_found', 404, 'The project does not exist.');

/** Tells the page that what it shows does not exist. */
const Missing = createContext<(isMissing: boolean) => void>(() => {});

export function Page({ title, beside, trail = [], tabs = [], actions, projectId, command, children }: PageProps) {
  const isProjectMissing = projectId !== undefined && !projectOf(projectId);
  const [isMissing, setMissing] = useState(isProjectMissing);
  const shown = isMissing ? 'Not found' : title;
  useEffect(() => {
    document.title = `${shown} · Dashboard`;
  }, [shown]);
  const sections = isMissing ? [] : tabs;
  const hrefs = sections.map(({ href }) => href).join(' ');
  useLayoutEffect(() => void (subject.value = { name: title, sections }), [title, hrefs]);
  useLayoutEffect(() => {
    if (projectId) pageProject.value = projectId;
  }, [projectId]);
  return (
    <main id="main" tabIndex={-1}>
      <Trail trail={trail} projectId={projectId} />
      <header class="page-head">
        <div class="title">
          <h1>{shown}</h1>
          {!isMissing && beside}
        </div>
        <div class="actions">
          <RoleNote projectId={projectId} />
          {!isMissing && actions}
        </div>
      </header>
      <Missing.Provider value={setMissing}>
        {isProjectMissing ? <Waiting error={NOT_FOUND} /> : children}
      </Missing.Provider>
      <ApiCalls projectId={projectId} command={command} />
    </main>
  );
}

/** What a page is called that knows no name of what it is below. */
const ID = /^[a-z]+_[0-9a-z]{26}$/;

function Trail({ trail, projectId }: { trail: readonly Tab[]; projectId: string | undefined }) {
  const project = projectOf(projectId);
  const steps = [
    { href: '/', label: 'Projects' },
    ...(project ? [{ href: `/projects/${project.id}`, label: project.name }] : []),
    ...trail,
  ];
  return (
    <nav class="trail" aria-label="Breadcrumb">
      <ol>
        {steps.map(({ href, label }) => (
          <li key={href}>
            <a href={href}>{ID.test(label) ? <ResourceName projectId={projectId} id={label} /> : label}</a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** What the address names is not there, or not for this person. */
export const isMissing = (error: ApiError | null | undefined): boolean => error?.status === 404;

/** In place of what is not there: an error, or room for what comes. */
export function Waiting({ error, rows = 4 }: { error?: ApiError | null | undefined; rows?: number }) {
  const setMissing = useContext(Missing);
  const isGone = isMissing(error);
  useLayoutEffect(() => {
    if (!isGone) return undefined;
    setMissing(true);
    return () => setMissing(false);
  }, [isGone]);
  if (error) {
    return (
      <div class="notice bad" role="alert">
        {isGone ? 'This does not exist, or you have no access to it.' : error.message}
      </div>
    );
  }
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

interface EmptyProps {
  title: string;
  children: ComponentChildren;
  /** Command that does the next step. */
  command?: string;
  action?: ComponentChildren;
}

/** Says the next step where a list has nothing. */
export function Empty({ title, children, command, action }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <p>{children}</p>
      {action && <p>{action}</p>}
      {command && (
        <p class="command">
          On the command line: <code>{command}</code>
        </p>
      )}
    </div>
  );
}

export function Section({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section>
      <header class="section-head">
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** A value that may be long has the room of two. */
export type Fact = readonly [name: string, value: ComponentChildren, room?: 'double'];

export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value, room]) => (
        <div key={name} class={room}>
          <dt>{name}</dt>
          <dd>{value ?? '–'}</dd>
        </div>
      ))}
    </dl>
  );
}
