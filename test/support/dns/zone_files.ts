/** What makes zone files hard to read; `@ORIGIN@` stands for the name of the zone with its dot. */
export const TRICKY_ZONE_FILE = `$TTL 2h ; a comment with "a quote
@ 1D IN SOA ns hostmaster\\.of.zone ( 1 ; (
   2h 15M 2W 1h )
   IN NS ns.example.net.
\tIN\t300\ta\t192.0.2.1
two 300 IN A 192.0.2.2
 AAAA 2001:DB8:0:0::2 ; the same owner
; nothing but a comment

 TXT ( "one ; part" two
   "three ( \\"quoted\\"" ) ; behind
esc TXT a\\;b\\ c\\032\\195\\164\\" "\\\\"
$ORIGIN deep
Host mx 5 @
     MX 10 mail.@ORIGIN@
$TTL 60
*.wild CNAME host
_x._tcp.deep2.@ORIGIN@ SRV 0 0 443 .
@ORIGIN@ CAA 128 issue ";"
`;
