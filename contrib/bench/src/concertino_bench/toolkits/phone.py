"""The tools with which a customer of `telecom` looks at the phone and changes its settings.

Written from the published tasks and from what the published phone does. The invariant: all of them are the user's: who
is tested cannot call them, except where there is no user and both sides are played by one.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from .handset import DEFAULT_APN, SPEEDS, Handset, shown_switch
from .toolkit import ToolError, reads, writes

Mode = Literal["4g_5g_preferred", "4g_only", "3g_only", "2g_only"]


class Phone(Handset):
    """A phone with 30 tools for its user."""

    name: ClassVar[str] = "phone"

    # -- looking -------------------------------------------------------------------------------------------------------

    @reads(by="user")
    def check_status_bar(self) -> str:
        """Look at the bar at the top of the screen: signal, mobile data, Wi-Fi, VPN, battery."""
        return self._bar()

    @reads(by="user")
    def check_network_status(self) -> str:
        """Look at airplane mode, SIM card, signal, kind of network, mobile data, roaming and Wi-Fi."""
        phone = self._phone
        lines = [
            f"Airplane Mode: {shown_switch(phone['airplane_mode'])}",
            f"SIM Card Status: {self._sim()}",
            f"Cellular Connection: {phone['network_connection_status']}",
            f"Cellular Signal: {phone['network_signal_strength']}",
            f"Cellular Network Type: {phone['network_technology_connected']}",
            f"Mobile Data: {shown_switch(phone['data_enabled'])}",
            f"Data Roaming: {shown_switch(phone['roaming_enabled'])}",
            f"Wi-Fi Radio: {shown_switch(phone['wifi_enabled'])}",
            f"Wi-Fi Network: {(phone['wifi_ssid'] or 'connected') if phone['wifi_connected'] else 'none'}",
        ]
        return "\n".join(lines)

    @reads(by="user")
    def check_network_mode_preference(self) -> str:
        """Look which kind of network the phone prefers."""
        return f"Network Mode Preference: {self._phone['network_mode_preference']}"

    @reads(by="user")
    def run_speed_test(self) -> str:
        """Measure how fast the mobile data connection is."""
        speed, word = self._speed()
        if speed is None:
            return "Speed test failed: no connection."
        advice = next(text for _, name, text in SPEEDS if name == word)
        return f"Speed Test Result: {speed:.2f} Mbps ({word}). {advice}"

    @reads(by="user")
    def check_sim_status(self) -> str:
        """Look whether the SIM card is active, missing, or locked with a PIN or PUK."""
        texts = {"active": "active and working", "missing": "missing", "locked_pin": "locked with a PIN code"}
        return f"The SIM card is {texts.get(self._sim(), 'locked with a PUK code')}."

    @reads(by="user")
    def check_data_restriction_status(self) -> str:
        """Look whether Data Saver mode limits the data."""
        return f"Data Saver mode is {shown_switch(self._phone['data_saver_mode'])}."

    @reads(by="user")
    def check_apn_settings(self) -> str:
        """Look at the technical settings of the carrier's data network: APN name and MMSC URL for picture messages."""
        settings = self._phone["active_apn_settings"]
        url = settings["mmsc_url"] or "Not Set"
        return f"Current APN Name: {settings['apn_name']}\nMMSC URL (for picture messages): {url}"

    @reads(by="user")
    def check_wifi_status(self) -> str:
        """Look whether Wi-Fi is on, and which network it is connected to."""
        phone = self._phone
        if not phone["wifi_enabled"]:
            return "Wi-Fi is OFF."
        if not phone["wifi_connected"]:
            return "Wi-Fi is ON but not connected to any network."
        return f"Wi-Fi is ON and connected to '{phone['wifi_ssid']}'. Signal: {phone['wifi_signal_strength']}."

    @reads(by="user")
    def check_wifi_calling_status(self) -> str:
        """Look whether calls go over Wi-Fi."""
        return f"Wi-Fi Calling is {shown_switch(self._phone['wifi_calling_enabled'])}."

    @reads(by="user")
    def check_vpn_status(self) -> str:
        """Look whether a VPN is connected, and how it is."""
        phone = self._phone
        if phone["vpn_connected"]:
            return f"VPN is ON and connected. Details: {phone['vpn_details'] or 'none'}"
        return "VPN is ON in the settings, but not connected." if phone["vpn_enabled_setting"] else "VPN is OFF."

    @reads(by="user")
    def check_installed_apps(self) -> str:
        """List the apps of the phone."""
        return f"Installed apps: {', '.join(self._phone['app_statuses'])}"

    @reads(by="user")
    def check_app_status(self, app_name: str) -> str:
        """Look at an app and what it is allowed to do.

        Args:
            app_name: such as 'messaging'
        """
        return self._allowed(app_name)

    @reads(by="user")
    def check_app_permissions(self, app_name: str) -> str:
        """Look what an app is allowed to do.

        Args:
            app_name: such as 'messaging'
        """
        return self._allowed(app_name)

    @reads(by="user")
    def can_send_mms(self) -> str:
        """Look whether the messaging app can send picture messages."""
        return f"Your messaging app {'can' if self._mms() else 'cannot'} send MMS messages."

    @reads(by="user")
    def check_payment_request(self) -> str:
        """Look whether the company asks for a payment."""
        request = self._around["payment_request"]
        if request is None:
            return "No payment request has been made."
        return f"You have a payment request for bill {request['bill_id']} of {request['amount_due']} USD."

    # -- changing ------------------------------------------------------------------------------------------------------

    @writes(by="user")
    def set_network_mode_preference(self, mode: Mode) -> str:
        """Choose which kind of network the phone prefers.

        Args:
            mode: the newest first, or one kind alone
        """
        self._phone["network_mode_preference"] = mode
        self._search()
        return self._told(f"Preferred Network Mode set to: {mode}.")

    @writes(by="user")
    def toggle_airplane_mode(self) -> str:
        """Turn Airplane Mode on or off. On, it ends all wireless connections, a VPN included."""
        self._set_airplane(not self._phone["airplane_mode"])
        return self._told(f"Airplane Mode is now {shown_switch(self._phone['airplane_mode'])}.")

    @writes(by="user")
    def reseat_sim_card(self) -> str:
        """Take the SIM card out and put it in again."""
        self._phone["sim_card_missing"] = False
        self._search()
        return self._told("SIM card taken out and put in again.")

    @writes(by="user")
    def toggle_data(self) -> str:
        """Turn mobile data on or off."""
        return self._toggle("data_enabled", "Mobile Data", search=True)

    @writes(by="user")
    def toggle_roaming(self) -> str:
        """Turn data roaming on or off, which a phone needs for data abroad."""
        return self._toggle("roaming_enabled", "Data Roaming", search=True)

    @writes(by="user")
    def toggle_data_saver_mode(self) -> str:
        """Turn Data Saver mode on or off. On, data is slower."""
        return self._toggle("data_saver_mode", "Data Saver Mode")

    @writes(by="user")
    def set_apn_settings(self, apn_settings: dict[str, Any]) -> str:
        """Set the technical settings of the carrier's data network.

        Args:
            apn_settings: `apn_name`, `mms_apn`, `mmsc_url`, `mms_proxy`, `mms_port`; what is left out has its default
        """
        if unknown := sorted({*apn_settings} - {*DEFAULT_APN}):
            raise ToolError(f"unknown setting {unknown[0]!r}; expected some of {', '.join(DEFAULT_APN)}")
        if apn_settings.get("apn_name", "internet") not in ("internet", "broken"):
            raise ToolError(f"apn_name={apn_settings['apn_name']!r}; expected 'internet'")
        self._phone["active_apn_settings"] = {**DEFAULT_APN, **apn_settings}
        self._search()
        return self._told(f"APN settings set to: {self._phone['active_apn_settings']['apn_name']}.")

    @writes(by="user")
    def reset_apn_settings(self) -> str:
        """Have the settings of the carrier's data network reset at the next reboot."""
        self._phone["active_apn_settings"]["reset_at_reboot"] = True
        self._search()
        return self._told("APN settings will reset at reboot.")

    @writes(by="user")
    def toggle_wifi(self) -> str:
        """Turn Wi-Fi on or off."""
        phone = self._phone
        if phone["airplane_mode"]:
            return self._told("Wi-Fi cannot be changed while Airplane Mode is ON.")
        phone["wifi_enabled"] = not phone["wifi_enabled"]
        if not phone["wifi_enabled"]:
            self._leave_wifi()
        return self._told(f"Wi-Fi is now {shown_switch(phone['wifi_enabled'])}.")

    @writes(by="user")
    def toggle_wifi_calling(self) -> str:
        """Turn calls over Wi-Fi on or off."""
        return self._toggle("wifi_calling_enabled", "Wi-Fi Calling")

    @writes(by="user")
    def connect_vpn(self) -> str:
        """Connect to the VPN of the phone."""
        if self._phone["vpn_connected"]:
            return "VPN already connected."
        self._join_vpn("excellent")
        return self._told("VPN connected.")

    @writes(by="user")
    def disconnect_vpn(self) -> str:
        """Leave the VPN."""
        if not self._phone["vpn_connected"]:
            return self._told("No VPN was connected.")
        self._leave_vpn()
        return self._told("VPN disconnected.")

    @writes(by="user")
    def grant_app_permission(self, app_name: str, permission: str) -> str:
        """Allow an app something.

        Args:
            app_name: such as 'messaging'
            permission: 'sms', 'storage', 'phone' or 'network'
        """
        self._permit(app_name, permission, True)
        return self._told(f"Permission '{permission.lower()}' granted to app '{app_name}'.")

    @writes(by="user")
    def reboot_device(self) -> str:
        """Restart the phone."""
        phone = self._phone
        if phone["active_apn_settings"]["reset_at_reboot"]:
            phone["active_apn_settings"] = dict(DEFAULT_APN)
        self._search()
        return self._told("The phone was restarted.")

    @writes(by="user")
    def make_payment(self) -> str:
        """Pay the bill that the company has asked to be paid."""
        request = self._around["payment_request"]
        if request is None:
            return "You do not have a payment request."
        request["paid"] = True
        return f"Payment of {request['amount_due']} USD has been made for bill {request['bill_id']}."
