// The most frequent long passwords of published leaks, in lower case and without special characters. Some are shorter
// than twelve characters, since special characters can lengthen them (NIST SP 800-63B section 5.1.1.2).
const WORDS = `
0123456789 01234567890 012345678910 123123123123 1234512345 123456123456 12345678901 123456789012 1234567890123
12345678901234 123456789012345 1234567890123456 123456789101 1234567891011 123456789abc 123456789qwe 123456abcdef
123456qwerty 12345qwert12345 123abc123abc 123qwe123qwe 123qweasdzxc 147258369 147258369147 1q2w3e4r5t 1q2w3e4r5t6y
1q2w3e4r5t6y7u 1q2w3e4r5t6y7u8i 1q2w3e4r5t6y7u8i9o 1q2w3e4r5t6y7u8i9o0p 1qa2ws3ed4rf 1qaz2wsx3edc 1qaz2wsx3edc4rfv
1qazxsw23edc 987654321 9876543210 987654321012 987654321987 a1b2c3d4e5f6 aa123456789 aa1234567890 abc123abc123
abc123456789 abcd12345678 abcdef123456 abcdefghij abcdefghijk abcdefghijkl abcdefghijklm abcdefghijklmnop
abcdefghijklmnopqrstuvwxyz admin1234567 admin12345678 admin123456789 adminadmin adminadmin123 adminadminadmin
adminpassword administrator administrator1 administrator123 alexander123 asdasdasdasd asdf12345678 asdfasdfasdf
asdfghjkl asdfghjkl1 asdfghjkl12 asdfghjkl123 asdfghjklqwertyuiop asdfjkl12345 assassinscreed azertyuiop azertyuiop12
azertyuiop123 azertyuiopqsdf barcelona123 basketball1 basketball12 basketball123 bismillah123 bismillahirrahmanirrahim
changeme1234 changeme12345 changeme123456 changemechangeme changemeplease changepassword charlie12345 chocolate123
christopher1 christopher12 computer1234 correcthorsebatterystaple counterstrike defaultpassword dragondragon
elizabeth123 football1234 football12345 freedom12345 fuckyoufuckyou godisgoodallthetime hello1234567 hellohello12
hellohellohello helloworld helloworld1 helloworld12 helloworld123 iloveyou1234 iloveyou12345 iloveyou123456
iloveyoubaby iloveyouforever iloveyouiloveyou iloveyousomuch internet1234 jennifer1234 jesuschrist1 jesusislord1
jesuslovesme justinbieber letmein12345 letmein123456 letmeinletmein letmeinplease liverpoolfc1 liverpoolfc123
manchester123 manchesterunited master123456 metallica123 michael12345 microsoft123 minecraft123 monkey123456
motherfucker mynameisjohn mypassword mypassword1 mypassword12 mypassword123 newpassword1 newpassword12 newpassword123
nopassword12 p4ssw0rd1234 p4ssword1234 passw0rd1234 passw0rd12345 passw0rd123456 passw0rdpassw0rd password password1
password12 password123 password1234 password12345 password123456 password1234567 password12345678 password123456789
password1234567890 password2020 password2021 password2022 password2023 password2024 password2025 password2026
passwordpassword passwordpassword1 passwort1234 passwort12345 photography1 pokemon12345 princess1234 princess12345
q1w2e3r4t5 q1w2e3r4t5y6 q1w2e3r4t5y6u7 q1w2e3r4t5y6u7i8 qazwsx123456 qazwsxedc123 qazwsxedcrfv qazwsxedcrfvtgb
qwaszxqwaszx qweasdzxc123 qweasdzxcrty qweqweqweqwe qwer12345678 qwert1234567 qwerty123123 qwerty123456 qwerty1234567
qwerty12345678 qwerty123456789 qwerty1234567890 qwertyasdfgh qwertyqwerty qwertyqwerty1 qwertyuiop qwertyuiop1
qwertyuiop12 qwertyuiop123 qwertyuiop1234 qwertyuiop12345 qwertyuiop123456 qwertyuiopasdfghjkl
qwertyuiopasdfghjklzxcvbnm rootrootroot samsung12345 secret123456 secretpassword shadow123456 simplepassword
spiderman123 starwars1234 sunshine1234 sunshine12345 superman1234 superman12345 supersecret1
supersecretpassword temppassword1 temppassword123 test12345678 test123456789 testpassword testpassword1 testtesttest
thisismypassword trustno12345 unbelievable verysecurepassword welcome12345 welcome123456 welcomewelcome
whatever1234 yourpassword zaq12wsxcde3 zaq1xsw2cde3 zaqxswcdevfr zxcvbnm12345 zxcvbnm123456 zxcvbnmasdfghjkl
zxcvbnmasdfghjklqwertyuiop`;

const COMMON = new Set(WORDS.trim().split(/\s+/));

/** Keeps letters and digits in lower case, since special characters and capitals do not prevent guessing. */
export function foldPassword(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
}

export function isCommonPassword(password: string): boolean {
  return COMMON.has(foldPassword(password));
}
