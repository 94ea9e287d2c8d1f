// Tests which address counts as the client's.
#include "server/http/client_address.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quire::http {
namespace {

std::string parsed(std::string_view text) {
  const auto address = IpAddress::parse(text);
  return address ? address->text() : "none";
}

TEST(IpAddress, IsReadWithAndWithoutAPort) {
  EXPECT_EQ(parsed("1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(parsed("1.2.3.4:80"), "1.2.3.4");
  EXPECT_EQ(parsed("::ffff:1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(parsed("2001:DB8::1"), "2001:db8::1");
  EXPECT_EQ(parsed("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(parsed("[2001:db8::1]:443"), "2001:db8::1");
  EXPECT_EQ(parsed("[::ffff:1.2.3.4]:1"), "1.2.3.4");
  for (const char* bad :
       {"", "unknown", "_hidden", "1.2.3", "1.2.3.4.5", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:123456",
        "[::1", "[::1]x", "[]", "::1%eth0", "1.2.3.4 5", ":80", "01.2.3.4", "0x7f.1", "[[::1]]"}) {
    EXPECT_EQ(parsed(bad), "none") << bad;
  }
}

TEST(IpAddress, NetworksAreThoseOfCustomers) {
  const auto network = [](const char* text) { return IpAddress::parse(text)->network(); };
  EXPECT_NE(network("1.2.3.4"), network("1.2.3.5"));
  EXPECT_EQ(network("1.2.3.4"), network("::ffff:1.2.3.4"));
  EXPECT_EQ(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2"));
  EXPECT_NE(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
}

std::string client(const std::vector<std::string>& fields,
                   const std::vector<std::string>& trusted = {"10.0.0.0/8,127.0.0.1",
                                                              "2001:db8::/32"}) {
  Headers headers = {{"host", "a"}};
  for (const std::string& field : fields) headers.emplace_back("x-forwarded-for", field);
  const auto address = Proxies::create(trusted)->client_of(headers);
  return address ? address->text() : "none";
}

TEST(Proxies, TheRightmostUntrustedAddressIsTheClient) {
  EXPECT_EQ(client({"203.0.113.7"}), "203.0.113.7");
  EXPECT_EQ(client({"9.9.9.9, 203.0.113.7"}), "203.0.113.7") << "the left one can be forged";
  EXPECT_EQ(client({"9.9.9.9,203.0.113.7,10.1.2.3 , 127.0.0.1"}), "203.0.113.7");
  EXPECT_EQ(client({"9.9.9.9", "203.0.113.7", "10.1.2.3"}), "203.0.113.7") << "several fields";
  EXPECT_EQ(client({"2001:db9::1, [2001:db8::5]:4711"}), "2001:db9::1");
}

TEST(Proxies, IfAllAreTrustedTheLeftmostIsTheClient) {
  EXPECT_EQ(client({"10.0.0.1, 10.0.0.2"}), "10.0.0.1");
  EXPECT_EQ(client({"10.0.0.1"}, {"0.0.0.0/0"}), "10.0.0.1");
}

TEST(Proxies, AValueThatIsNoAddressEndsTheSearch) {
  EXPECT_EQ(client({}), "none");
  EXPECT_EQ(client({""}), "none");
  EXPECT_EQ(client({"203.0.113.7, unknown"}), "none");
  EXPECT_EQ(client({"203.0.113.7, unknown, 10.0.0.2"}), "10.0.0.2") << "the last certain one";
  EXPECT_EQ(client({"203.0.113.7,"}), "none");
  EXPECT_EQ(client({"203.0.113.7", ""}), "none");
  EXPECT_EQ(client({std::string(16'000, ',')}), "none");
  EXPECT_EQ(client({"evil\" status=200, 203.0.113.7"}), "203.0.113.7");
}

TEST(Proxies, AreAddressesNetworksAndTheUnixSocket) {
  const auto trusts = [](const char* network, const char* peer) {
    return Proxies::create({network})->trusts(peer);
  };
  EXPECT_TRUE(trusts("127.0.0.1", "127.0.0.1:50312"));
  EXPECT_FALSE(trusts("127.0.0.1", "127.0.0.2:50312"));
  EXPECT_TRUE(trusts("10.0.0.0/9", "10.127.0.1:1"));
  EXPECT_FALSE(trusts("10.0.0.0/9", "10.128.0.1:1"));
  EXPECT_TRUE(trusts("10.0.0.0/9", "[::ffff:10.1.1.1]:1"));
  EXPECT_TRUE(trusts("0.0.0.0/0", "1.2.3.4:1"));
  EXPECT_FALSE(trusts("0.0.0.0/0", "[2001:db8::1]:1"));
  EXPECT_TRUE(trusts("::/0", "[2001:db8::1]:1"));
  EXPECT_TRUE(trusts("fe80::/10", "[febf::1]:1"));
  EXPECT_FALSE(trusts("fe80::/10", "[fec0::1]:1"));
  EXPECT_TRUE(trusts("unix", "unix"));
  EXPECT_FALSE(trusts("0.0.0.0/0", "unix"));
  EXPECT_FALSE(trusts("unix", "unknown"));
  EXPECT_FALSE(Proxies().trusts("127.0.0.1:1"));
}

TEST(Proxies, RefuseOtherTexts) {
  for (const char* bad : {"", "localhost", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x",
                          "::/129", "1.2.3.4:80", "[::1]", "10.0.0.0/8,", "10.0.0.0/8 ; unix"}) {
    const auto proxies = Proxies::create({bad});
    ASSERT_FALSE(proxies.ok()) << bad;
    EXPECT_NE(proxies.status().message().find("`trusted_proxies`: got '"), std::string::npos);
  }
  EXPECT_TRUE(Proxies::create({" 10.0.0.0/8 , unix", "::1"}).ok());
}

TEST(PeerLimit, CountsPerNetwork) {
  PeerLimit limit(2);
  auto first = limit.take("a");
  const auto second = limit.take("a");
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(limit.take("a"), nullptr);
  EXPECT_NE(limit.take("b"), nullptr);
  first.reset();
  EXPECT_NE(limit.take("a"), nullptr);
  std::vector<std::shared_ptr<void>> uncounted;
  for (int i = 0; i < 10; ++i) uncounted.push_back(limit.take(""));
  EXPECT_NE(uncounted.back(), nullptr);
}

}  // namespace
}  // namespace quire::http
