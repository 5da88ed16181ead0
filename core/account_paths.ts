// Pages that links of mail lead to, on the port of the API.
export const ACCOUNT_PATHS = {
  resetPassword: '/account/reset-password',
  newPassword: '/account/new-password',
  confirmEmail: '/account/confirm-email',
  invitation: '/account/invitation',
} as const;
