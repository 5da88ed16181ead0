// Who is logged in, and the projects that they see.
import { signal } from '@preact/signals';
import { onLoggedOut, request } from './api/client';
import { graphql, type ResultOf } from './api/graphql';
import { navigate } from './router';

/** What every page knows of a project. */
export const PROJECT_FIELDS = graphql(`
  fragment ProjectFields on Project {
    id
    name
    description
    role
    default_region
    deleted_retention_days
  }
`);
const VIEWER = graphql(
  `
    query Viewer {
      viewer {
        user {
          id
          name
          email
        }
        account {
          name
        }
        two_factor_enabled
        email_confirmed
        recovery_codes_left
        is_operator
      }
      installation {
        version
        missing_domain
        newer_release {
          version
          security
          changes
          command
        }
      }
      listProjects(limit: 100, sort: "name") {
        data {
          ...ProjectFields
        }
        next_cursor
      }
    }
  `,
  [PROJECT_FIELDS],
);
const MORE_PROJECTS = graphql(
  `
    query MoreProjects($cursor: String) {
      listProjects(limit: 100, sort: "name", cursor: $cursor) {
        data {
          ...ProjectFields
        }
        next_cursor
      }
    }
  `,
  [PROJECT_FIELDS],
);
const LOGOUT = graphql(`
  mutation Logout {
    logout
  }
`);

export type Viewer = ResultOf<typeof VIEWER>['viewer'];
export type Installation = ResultOf<typeof VIEWER>['installation'];
export type Project = ResultOf<typeof PROJECT_FIELDS>;
export type Role = NonNullable<Project['role']>;

/** undefined until it is known. */
export const viewer = signal<Viewer | null | undefined>(undefined);
export const projects = signal<readonly Project[]>([]);
/** What serves these pages; null while nobody is logged in. */
export const installation = signal<Installation | null>(null);

/** Asks who is logged in. @throws ApiError where the server does not answer */
export async function loadSession(): Promise<void> {
  try {
    const answer = await request(VIEWER, {});
    projects.value = await withMore(answer.listProjects);
    viewer.value = answer.viewer;
    installation.value = answer.installation;
  } catch (error) {
    if (viewer.value === null) return;
    throw error;
  }
}

/** All projects: the role in each one decides what its pages offer. */
async function withMore({ data, next_cursor }: ResultOf<typeof VIEWER>['listProjects']): Promise<Project[]> {
  if (!next_cursor) return data;
  const { listProjects } = await request(MORE_PROJECTS, { cursor: next_cursor });
  return [...data, ...(await withMore(listProjects))];
}

export async function logOut(): Promise<void> {
  await request(LOGOUT, {});
  viewer.value = null;
  installation.value = null;
  projects.value = [];
  navigate('/sign-in');
}

/** The project of an id, as far as it is known. */
export function projectOf(id: string | undefined): Project | undefined {
  return projects.value.find((project) => project.id === id);
}

const RANKS: Role[] = ['viewer', 'developer', 'owner'];

/** Whether the person may do in a project what needs a role. */
export function mayActAs(role: Role, projectId: string | undefined): boolean {
  const own = projectOf(projectId)?.role;
  return own != null && RANKS.indexOf(own) >= RANKS.indexOf(role);
}

// A session that ended leads to the login page, and from there back to where the person was.
onLoggedOut(() => {
  viewer.value = null;
  installation.value = null;
});
